#include "check.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "vec/pool.hpp"

using namespace wz;

namespace {

void test_every_index_once(int threads) {
  Pool pool(threads);
  CHECK_EQ(pool.num_threads(), threads);
  bool right = true;
  for (int round = 0; round < 300; ++round) {
    const int count = round % 67;
    std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
    pool.run(count, [&](int thread, int index) {
      if (thread < 0 || thread >= threads) throw std::runtime_error("no such thread");
      hits[static_cast<size_t>(index)].fetch_add(1);
    });
    for (const auto& hit : hits) right &= hit.load() == 1;
  }
  CHECK(right);
}

void test_errors(int threads) {
  Pool pool(threads);
  std::atomic<int> ran{0};
  std::string message;
  try {
    pool.run(40, [&](int, int index) {
      ran.fetch_add(1);
      if (index == 7 || index == 31) throw std::invalid_argument("no");
    });
  } catch (const std::runtime_error& e) {
    message = e.what();
  }
  CHECK(message == "lane 7: no");
  CHECK_EQ(ran.load(), 40);
  ran = 0;
  pool.run(40, [&](int, int) { ran.fetch_add(1); });
  CHECK_EQ(ran.load(), 40);
  try {
    pool.run(1, [](int, int) { throw 5; });
  } catch (const std::runtime_error& e) {
    message = e.what();
  }
  CHECK(message == "lane 0: unknown error");
}

void test_background(int threads) {
  std::atomic<int> queued{0};
  std::atomic<int> finished{0};
  Pool pool(threads, [&](int thread) {
    if (thread < 1 || thread >= threads) return false;
    int left = queued.load();
    while (left > 0 && !queued.compare_exchange_weak(left, left - 1)) {
    }
    if (left <= 0) return false;
    finished.fetch_add(1);
    finished.notify_all();
    return true;
  });
  int expected = 0;
  for (int round = 0; round < 50; ++round) {
    queued.fetch_add(20);
    expected += 20;
    pool.wake();
    pool.run(10, [](int, int) {});
    for (int now; (now = finished.load()) != expected;) finished.wait(now);
  }
  CHECK_EQ(finished.load(), expected);
}

/// A process that was forked has no workers: it must neither wait for them nor crash.
void test_fork() {
  Pool* pool = new Pool(3);
  std::atomic<int> ran{0};
  pool->run(10, [&](int, int) { ran.fetch_add(1); });
  const pid_t child = fork();
  if (child == 0) {
    delete pool;
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
  delete pool;
  CHECK_EQ(ran.load(), 10);
}

}  // namespace

int main() {
  for (const int threads : {1, 2, 3, 5}) {
    test_every_index_once(threads);
    test_errors(threads);
    if (threads > 1) test_background(threads);
  }
  test_fork();
  CHECK_THROWS(std::invalid_argument, Pool(0));
  Pool pool(1);
  CHECK_THROWS(std::invalid_argument, pool.run(Pool::kMaxCount + 1, [](int, int) {}));
  // Threads that were never given work end too.
  for (int i = 0; i < 50; ++i) Pool idle(3);
  return check::finish();
}
