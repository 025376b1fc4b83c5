#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "vec/vector.hpp"

// Whose call is served when, and what becomes of a vector in a forked child.

namespace wz {

/// Whether this process was forked from another one while something was under way there. Nothing
/// has changed here since: threads do not survive a fork.
bool Vector::is_parents() const {
  if (process_ == getpid()) return false;
  return calls_ != 0 || step_ ||
         std::ranges::any_of(sent_, [](const auto& job) { return !Pool::is_complete(*job); });
}

/// What cannot be taken apart is left where it is.
void Vector::abandon() noexcept {
  static_cast<void>(async_.release());
  static_cast<void>(new std::shared_ptr<LaneSet>(std::move(lanes_)));
  static_cast<void>(new std::shared_ptr<Pool>(std::move(pool_)));
}

Vector::Call::Call(Vector& vector) : vector_(vector) {
  if (vector.is_parents()) {
    throw std::runtime_error(
        "what is under way is the parent's; make a vector of this process's own");
  }
  if (vector.process_ != getpid()) {
    // Idle at the fork, so all of it is here.
    vector.process_ = getpid();
    vector.sent_.clear();
  }
  ++vector.calls_;
  lock_ = std::unique_lock<std::mutex>(vector.mutex_);
  if (!vector.lanes_) {
    lock_.unlock();
    --vector.calls_;
    throw std::runtime_error("this vector is closed");
  }
}

Vector::Call::~Call() {
  lock_.unlock();
  --vector_.calls_;
}

Vector::Call Vector::enter() { return Call(*this); }

}  // namespace wz
