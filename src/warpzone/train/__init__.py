"""Training: lanes play, the collector fills rollouts, the learner improves the agent."""
