#include <memory>
#include <thread>

#include "check.hpp"
#include "rig.hpp"

using namespace wz;

namespace {

const Vector::Stages kFirst = {{0}, {1}, {2}, {3, 4}, {}};
const Vector::Stages kSecond = {{9}, {12}, {31}};

std::vector<int64_t> actions_of(const Rig& rig, int step) {
  std::vector<int64_t> actions;
  for (int lane = 0; lane < rig.lanes; ++lane) actions.push_back(scripted_action(step, lane));
  return actions;
}

void begin(Rig& rig) {
  rig.seed();
  rig.reset();
}

bool same(const Rig& a, const Rig& b) {
  return a.obs == b.obs && a.reward == b.reward && a.info == b.info && a.final_obs == b.final_obs &&
         a.final_info == b.final_info;
}

/// Two vectors whose steps wait in one line live the lives they have alone.
void test_shared_threads(const CartridgePtr& cart, int threads) {
  const auto pool = Vector::make_pool(threads);
  Rig first(restless_config(), cart, kFirst, pool), second(restless_config(), cart, kSecond, pool);
  Rig alone_first(restless_config(), cart, kFirst), alone_second(restless_config(), cart, kSecond);
  for (Rig* rig : {&first, &second, &alone_first, &alone_second}) begin(*rig);
  for (int step = 0; step < 40; ++step) {
    const auto for_first = actions_of(first, step), for_second = actions_of(second, step + 1);
    first.vector.start(for_first.data(), first.arrays());
    second.vector.start(for_second.data(), second.arrays());
    alone_first.step(for_first);
    alone_second.step(for_second);
    first.vector.finish();
    second.vector.finish();
    CHECK(same(first, alone_first));
    CHECK(same(second, alone_second));
  }
}

/// Nothing may touch lanes that are being stepped, and afterwards all is as before.
void test_refusals(const CartridgePtr& cart) {
  Rig rig(restless_config(), cart, kFirst, 2);
  begin(rig);
  CHECK_THROWS(std::runtime_error, rig.vector.finish());
  const auto actions = actions_of(rig, 0);
  rig.vector.start(actions.data(), rig.arrays());
  CHECK_THROWS(std::runtime_error, rig.vector.start(actions.data(), rig.arrays()));
  CHECK_THROWS(std::runtime_error, rig.step(actions));
  CHECK_THROWS(std::runtime_error, rig.reset());
  CHECK_THROWS(std::runtime_error, rig.seed());
  CHECK_THROWS(std::runtime_error, rig.vector.save(0));
  CHECK_THROWS(std::runtime_error, rig.ram_of(0));
  CHECK_THROWS(std::runtime_error, rig.vector.num_restarts());
  const int64_t lane = 0;
  CHECK_THROWS(std::runtime_error, rig.vector.send({actions.data(), 1}, {&lane, 1}));
  int64_t received = 0;
  CHECK_THROWS(std::runtime_error, rig.vector.receive(1, rig.arrays(), &received));
  rig.vector.finish();
  CHECK(!rig.vector.save(0).empty());
  std::vector<int64_t> wrong(actions.size(), 999);
  CHECK_THROWS(std::invalid_argument, rig.vector.start(wrong.data(), rig.arrays()));
  rig.step(actions);
}

/// A vector that goes away lets its step end first; the other users of its threads go on.
void test_closing(const CartridgePtr& cart) {
  const auto pool = Vector::make_pool(3);
  Rig stays(restless_config(), cart, kSecond, pool);
  begin(stays);
  for (int round = 0; round < 10; ++round) {
    Rig goes(restless_config(), cart, kFirst, pool);
    begin(goes);
    const auto actions = actions_of(goes, round);
    if (round % 2) {
      goes.vector.start(actions.data(), goes.arrays());
    } else {
      const std::vector<int64_t> lanes = {0, 2, 3};
      goes.vector.send({actions.data(), lanes.size()}, lanes);
    }
    stays.step(actions_of(stays, round));
    goes.vector.close();
    CHECK_THROWS(std::runtime_error, goes.vector.finish());
  }
  stays.step(actions_of(stays, 10));
}

/// One thread begins steps, another one ends them.
void test_two_threads(const CartridgePtr& cart) {
  Rig rig(restless_config(), cart, kFirst, 2);
  begin(rig);
  for (int step = 0; step < 10; ++step) {
    const auto actions = actions_of(rig, step);
    rig.vector.start(actions.data(), rig.arrays());
    std::thread([&] { rig.vector.finish(); }).join();
  }
  CHECK_EQ(rig.info_of(0, column::kSteps), 10);
}

}  // namespace

int main() {
  const std::vector<uint8_t> file = check::rom();
  if (!file.empty()) {
    const CartridgePtr cart = parse_ines(file);
    for (const int threads : {1, 2, 4}) test_shared_threads(cart, threads);
    test_refusals(cart);
    test_closing(cart);
    test_two_threads(cart);
  }
  return check::finish();
}
