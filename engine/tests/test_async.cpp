#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include "check.hpp"
#include "rig.hpp"

using namespace wz;

namespace {

struct Row {
  std::vector<uint8_t> obs;
  float reward;
  bool ended;
  int32_t steps;
  bool operator==(const Row&) const = default;
};

const Vector::Stages kLanes = {{0}, {1}, {2}, {3, 4}, {}, {9}, {12}};

Row row_of(const Rig& rig, int row) {
  return {rig.obs_of(row), rig.reward[static_cast<size_t>(row)], rig.ended(row),
          rig.info_of(row, column::kSteps)};
}

std::map<int, std::vector<Row>> in_step(const CartridgePtr& cart, int steps) {
  Rig rig(restless_config(), cart, kLanes);
  rig.seed();
  rig.reset();
  std::map<int, std::vector<Row>> rows;
  for (int t = 0; t < steps; ++t) {
    std::vector<int64_t> actions;
    for (int lane = 0; lane < rig.lanes; ++lane) actions.push_back(scripted_action(t, lane));
    rig.step(actions);
    for (int lane = 0; lane < rig.lanes; ++lane) rows[lane].push_back(row_of(rig, lane));
  }
  return rows;
}

/// Whatever the threads and batches, each lane lives the life it has when all step together.
void test_same_lives(const CartridgePtr& cart, int threads, int batch) {
  constexpr int kSteps = 30;
  const auto expected = in_step(cart, kSteps);
  Rig rig(restless_config(), cart, kLanes, threads);
  rig.seed();
  rig.reset();
  std::map<int, std::vector<Row>> rows;
  std::vector<int64_t> ready;
  for (int lane = 0; lane < rig.lanes; ++lane) ready.push_back(lane);
  int under_way = 0;
  bool ends_right = true;
  while (true) {
    std::vector<int64_t> lanes, actions;
    for (const int64_t lane : ready) {
      const size_t done = rows[static_cast<int>(lane)].size();
      if (done == kSteps) continue;
      lanes.push_back(lane);
      actions.push_back(scripted_action(static_cast<int>(done), static_cast<int>(lane)));
    }
    rig.vector.send(actions, lanes);
    under_way += static_cast<int>(lanes.size());
    if (under_way == 0) break;
    ready.resize(static_cast<size_t>(std::min(batch, under_way)));
    rig.vector.receive(static_cast<int>(ready.size()), rig.arrays(), ready.data());
    under_way -= static_cast<int>(ready.size());
    for (size_t i = 0; i < ready.size(); ++i) {
      const int row = static_cast<int>(i);
      rows[static_cast<int>(ready[i])].push_back(row_of(rig, row));
      if (rig.ended(row)) {
        ends_right &= rig.final_info[i * kInfoColumns + column::kSteps] > 0 &&
                      rig.final_obs_of(row) != rig.obs_of(row);
      }
    }
  }
  CHECK(rows == expected);
  CHECK(ends_right);
}

void test_refusals(const CartridgePtr& cart) {
  Rig rig(restless_config(), cart, {{0}, {0}, {0}}, 2);
  const int64_t lanes[2] = {0, 2};
  const int64_t actions[2] = {1, 1};
  int64_t received[3];
  CHECK_THROWS(std::runtime_error, rig.vector.send(actions, lanes));  // never reset
  rig.reset();
  CHECK_THROWS(std::runtime_error, rig.vector.receive(1, rig.arrays(), received));
  const int64_t twice[2] = {1, 1};
  CHECK_THROWS(std::invalid_argument, rig.vector.send(actions, twice));
  const int64_t beyond[2] = {1, 3};
  CHECK_THROWS(std::out_of_range, rig.vector.send(actions, beyond));
  const int64_t wrong[2] = {1, 77};
  CHECK_THROWS(std::invalid_argument, rig.vector.send(wrong, lanes));
  CHECK_THROWS(std::invalid_argument, rig.vector.send({actions, 1}, lanes));
  rig.vector.send(actions, lanes);
  CHECK_THROWS(std::runtime_error, rig.vector.send({actions, 1}, {lanes, 1}));
  CHECK_THROWS(std::runtime_error, rig.vector.receive(3, rig.arrays(), received));
  CHECK_THROWS(std::runtime_error, rig.reset());
  CHECK_THROWS(std::runtime_error, rig.step(0));
  CHECK_THROWS(std::runtime_error, rig.vector.save(2));
  CHECK_THROWS(std::runtime_error, rig.vector.clone(1, 0));
  rig.vector.save(1);
  rig.vector.receive(2, rig.arrays(), received);
  rig.step(0);
  rig.vector.send(actions, lanes);
  rig.vector.close();  // with lanes under way
}

/// Turns for threads that do not exist must not pile up.
void test_alone_keeps_nothing(const CartridgePtr& cart) {
  Rig rig(small_config(), cart, {{0}}, 1);
  rig.reset();
  const int64_t lane = 0, action = 0;
  int64_t received = 0;
  const auto step = [&] {
    rig.vector.send({&action, 1}, {&lane, 1});
    rig.vector.receive(1, rig.arrays(), &received);
  };
  step();
  const size_t before = rig.vector.memory_bytes();
  for (int i = 0; i < 64; ++i) step();
  CHECK_EQ(rig.vector.memory_bytes(), before);
}

/// Several threads may use one vector; their calls take turns.
void test_shared_vector(const CartridgePtr& cart) {
  LaneConfig config = small_config();
  config.time_limit = 8;
  Rig rig(config, cart, {{0}, {0}, {0}}, 2);
  rig.reset();
  const auto play = [&] {
    Rig own(config, cart, {{0}, {0}, {0}});  // for its arrays
    const std::vector<int64_t> actions(3, 1);
    for (int t = 0; t < 20; ++t) rig.vector.step(actions.data(), own.arrays());
  };
  std::thread first(play), second(play);
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 10; ++i) bytes = rig.vector.save(1);
  first.join();
  second.join();
  rig.step(1);
  // 40 steps in turns of eight and a reset, then one more.
  CHECK_EQ(rig.info_of(0, column::kSteps), 41 % 9);
  CHECK(!bytes.empty());
}

#ifndef WZ_TSAN  // it forbids threads after a fork
/// A child that is forked while steps are under way has neither the threads that play them nor the
/// locks that those hold. It is told so, and waits for nobody, not even at the end.
int fork_under_way(const CartridgePtr& cart, bool started) {
  auto rig = std::make_unique<Rig>(restless_config(), cart, kLanes, 3);
  rig->seed();
  rig->reset();
  const std::vector<int64_t> actions(static_cast<size_t>(rig->lanes), 1);
  std::vector<int64_t> lanes;
  for (int lane = 0; lane < rig->lanes; ++lane) lanes.push_back(lane);
  if (started) {
    rig->vector.start(actions.data(), rig->arrays());
  } else {
    rig->vector.send(actions, lanes);
  }
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    int refused = 0;
    for (int call = 0; call < 3; ++call) {
      try {
        if (call == 0 && started) {
          rig->vector.finish();
        } else if (call == 0) {
          rig->vector.receive(rig->lanes, rig->arrays(), lanes.data());
        } else if (call == 1) {
          rig->vector.step(actions.data(), rig->arrays());
        } else {
          rig->vector.save(0);
        }
      } catch (const std::runtime_error&) {
        ++refused;
      }
    }
    rig->vector.close();
    rig.reset();
    // All of it, or, where everything was over by the time of the fork, nothing.
    _exit(refused == 3 ? 0 : refused == 0 ? 1 : 2);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  if (started) {
    rig->vector.finish();
  } else {
    rig->vector.receive(rig->lanes, rig->arrays(), lanes.data());
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void test_fork_under_way(const CartridgePtr& cart) {
  int refused = 0;
  for (int round = 0; round < 40; ++round) {
    CHECK_EQ(fork_under_way(cart, true), 0);
    const int code = fork_under_way(cart, false);
    CHECK(code == 0 || code == 1);
    refused += code == 0;
  }
  CHECK(refused > 0);
}

/// An idle vector is whole in a child, which plays it alone.
void test_fork_idle(const CartridgePtr& cart) {
  Rig rig(restless_config(), cart, kLanes, 3);
  rig.seed();
  rig.reset();
  rig.step(1);
  const std::vector<uint8_t> before = rig.vector.save(2);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const bool same = rig.vector.save(2) == before;
    rig.step(1);
    const std::vector<int64_t> actions(static_cast<size_t>(rig.lanes), 1);
    rig.vector.start(actions.data(), rig.arrays());
    rig.vector.finish();
    _exit(same && rig.info_of(0, column::kSteps) == 3 ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}
#endif

}  // namespace

int main() {
  const std::vector<uint8_t> file = check::rom();
  if (!file.empty()) {
    const CartridgePtr cart = parse_ines(file);
    test_same_lives(cart, 1, 7);
    test_same_lives(cart, 1, 2);
    test_same_lives(cart, 2, 3);
    test_same_lives(cart, 4, 1);
    test_refusals(cart);
    test_alone_keeps_nothing(cart);
    test_shared_vector(cart);
#ifndef WZ_TSAN
    test_fork_idle(cart);
    test_fork_under_way(cart);
#endif
  }
  return check::finish();
}
