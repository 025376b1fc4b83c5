"""Published results of other projects on single stages, with their sources.

Steps are decisions of the policy. `first` is the cost of the first clear from one fixed start with
the likeliest actions; `rate` is a measured share of cleared episodes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A project, what its numbers mean, and where they are."""

    name: str
    meaning: str
    url: str


SOURCES = (
    Source(
        "CVHvn PPO",
        "million steps / hours to the first clear, one fixed start, argmax",
        "https://github.com/CVHvn/Mario_PPO",
    ),
    Source(
        "CVHvn PPO+RND",
        "million steps / hours to the first clear, one fixed start, argmax",
        "https://github.com/CVHvn/Mario_PPO_RND",
    ),
    Source(
        "CVHvn PTR-PPO",
        "million steps / hours to the first clear, one fixed start, argmax",
        "https://github.com/CVHvn/Mario_PTR_PPO",
    ),
    Source(
        "CVHvn R2D2",
        "million steps / hours to the first clear, one fixed start, argmax",
        "https://github.com/CVHvn/Mario_Synchronous_R2D2",
    ),
    Source(
        "tsilva PPO",
        "clears in 100 episodes of the sampled policy, at million steps",
        "https://huggingface.co/tsilva",
    ),
    Source(
        "SnowWarri0r expert",
        "argmax clears over start delays 0..30 / 0..120",
        "https://github.com/SnowWarri0r/mario-rl",
    ),
)

_TABLE = """
1-1 | 0.45M / 0.6h | 3.49M / 5.5h | 1.68M / 4.1h | 1.18M / 1.4h | 100 % at 4.5M | 100 % / 100 %
1-2 | 3.10M / 3.0h | 3.74M / 7.7h | 5.41M / 15.9h | 3.00M / 4.0h | 97 % at 7.5M | 95 % / 94 %
1-3 | 4.21M / 5.1h | 7.12M / 15.5h | 8.54M / 22.1h | 14.37M / 12.6h | | 100 % / 100 %
1-4 | 0.16M / 0.2h | 0.52M / 0.7h | 0.74M / 2.0h | 0.99M / 1.1h | 97 % at 4.5M | 100 % / 100 %
2-1 | 9.77M / 7.7h | 9.62M / 14.8h | 6.65M / 15.1h | 7.67M / 11.2h | 82 % at 10M | 100 % / 98 %
2-2 | 10.50M / 11.4h | 30.03M / 42.6h | 7.96M / 17.7h | 1.26M / 1.7h | | 84 % / 60 %
2-3 | 0.83M / 1.0h | 3.14M / 6.1h | 1.92M / 4.6h | 2.32M / 2.9h | 98 % at 4.5M | 91 % / 91 %
2-4 | 2.12M / 2.2h | 1.16M / 2.3h | 1.38M / 3.5h | 1.16M / 1.5h | | 100 % / 100 %
3-1 | 4.33M / 5.7h | 3.10M / 4.9h | 2.02M / 4.6h | 2.85M / 3.8h | | 100 % / 100 %
3-2 | 0.48M / 0.7h | 1.56M / 3.3h | 1.07M / 3.0h | 0.92M / 1.2h | 98 % at 2.77M | 100 % / 100 %
3-3 | 1.06M / 0.7h | 13.50M / 16.4h | 2.22M / 4.1h | 3.86M / 5.0h | 96 % at 10.3M | 100 % / 100 %
3-4 | 0.23M / 0.4h | 0.95M / 1.7h | 1.70M / 3.2h | 1.20M / 1.1h | 96 % at 3.22M | 100 % / 100 %
4-1 | 0.68M / 0.9h | 1.76M / 2.7h | 2.15M / 3.9h | 1.71M / 2.1h | 97 % at 7.5M | 94 %
4-2 | 6.25M / 9.7h | 6.68M / 10.6h | 6.98M / 15.8h | 7.77M / 11.2h | | 94 %
4-3 | 1.18M / 1.5h | 3.39M / 5.3h | 1.70M / 4.4h | 13.66M / 18.2h | | 100 % / 100 %
4-4 | 3.65M / 4.3h | 1.78M / 2.8h | 3.51M / 7.6h | 8.44M / 12.2h | | 98 % (script + 2 nets)
5-1 | 0.90M / 1.4h | 2.15M / 3.2h | 2.50M / 5.8h | 3.01M / 2.7h | | 84 %
5-2 | 3.75M / 4.9h | 15.13M / 25.0h | 5.23M / 9.9h | 5.09M / 4.6h | | 90 %
5-3 | 9.82M / 7.9h | 27.83M / 50.7h | 3.42M / 8.3h | 13.95M / 12.3h | | 100 %
5-4 | 5.19M / 6.1h | 5.93M / 9.4h | 3.28M / 7.0h | 2.18M / 1.9h | | 100 %
6-1 | 1.28M / 1.2h | 1.95M / 3.1h | 1.15M / 3.0h | 1.48M / 1.3h | | 100 %
6-2 | 9.33M / 10.5h | 8.57M / 12.0h | 5.88M / 14.5h | 6.20M / 6.0h | | 100 %
6-3 | 2.43M / 2.8h | 2.46M / 2.8h | 2.54M / 6.2h | 8.46M / 11.7h | | 100 %
6-4 | 0.76M / 0.9h | 3.99M / 5.7h | 2.20M / 5.4h | 1.30M / 1.1h | | 87 %
7-1 | 2.24M / 2.7h | 4.00M / 6.1h | 2.88M / 7.1h | 1.31M / 1.1h | | 90 %
7-2 | 23.62M / 25.2h | 51.49M / 71.2h | 9.53M / 16.1h | 1.22M / 0.9h | | 13 %
7-3 | 3.94M / 4.6h | 3.19M / 4.7h | 3.48M / 7.9h | 4.74M / 4.3h | | 87 %
7-4 | 2.72M / 3.3h | 1.61M / 2.9h | 1.93M / 4.9h | 5.61M / 5.2h | |
8-1 | 23.22M / 13.2h | 48.94M / 95.0h | 39.29M / 91.9h | 23.35M / 25.1h | | 65 %
8-2 | 11.20M / 7.7h | 11.58M / 17.4h | 12.16M / 21.7h | 10.84M / 10.5h | | 94 %
8-3 | 31.44M / 19.2h | 9.49M / 13.5h | 4.21M / 9.2h | 5.09M / 7.0h | | 84 %
8-4 | | 31.55M / 31.8h | 24.53M / 60.0h | | |
"""

#: Stage -> one entry for each source, empty where nothing was found.
RESULTS: dict[str, tuple[str, ...]] = {
    cells[0]: tuple(cells[1:])
    for cells in ([cell.strip() for cell in row.split("|")] for row in _TABLE.strip().splitlines())
}
