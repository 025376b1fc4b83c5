#include "check.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "vec/pool.hpp"

using namespace wz;

#if defined(__SANITIZE_THREAD__)
#define WZ_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WZ_TSAN 1
#endif
#endif

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

/// Jobs that are under way at the same time, waited for in any order.
void test_queue(int threads) {
  Pool pool(threads);
  std::vector<std::atomic<int>> hits(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::shared_ptr<Pool::Job>> jobs;
    for (size_t kind = 0; kind < hits.size(); ++kind) {
      jobs.push_back(
          pool.start(5 + round % 7, [&hits, kind](int, int) { hits[kind].fetch_add(1); }));
    }
    if (round % 2) std::swap(jobs[0], jobs[2]);
    for (const auto& job : jobs) {
      pool.wait(*job);
      CHECK(Pool::is_complete(*job));
    }
    for (auto& count : hits) CHECK_EQ(count.exchange(0), 5 + round % 7);
  }
  // What one job throws is not the next one's.
  const auto bad = pool.start(4, [](int, int) { throw std::invalid_argument("no"); });
  const auto good = pool.start(4, [](int, int) {});
  pool.wait(*good);
  CHECK_THROWS(std::runtime_error, pool.wait(*bad));
  pool.wait(*pool.start(0, [](int, int) { throw std::invalid_argument("no"); }));
}

/// Workers start before a caller waits, and callers on several threads do not mix.
void test_many_callers(int threads) {
  Pool pool(threads);
  std::atomic<int> begun{0};
  const auto job = pool.start(1, [&](int, int) {
    begun.store(1);
    begun.notify_all();
  });
  begun.wait(0);
  pool.wait(*job);
  std::vector<std::thread> callers;
  std::atomic<int> total{0};
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        int mine = 0;
        std::mutex mutex;
        pool.run(9, [&](int, int) {
          const std::lock_guard<std::mutex> lock(mutex);
          ++mine;
        });
        if (mine == 9) total.fetch_add(1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK_EQ(total.load(), 300);
}

#ifndef WZ_TSAN  // it forbids threads after a fork
/// Threads that a child starts may get the names of the parent's, which it must not touch then.
void test_forked_child_with_threads() {
  auto pool = std::make_unique<Pool>(4);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    int ran = 0;
    pool->run(10, [&](int, int) { ++ran; });
    bool right = ran == 10 && !pool->has_workers();
    {
      Pool own(4);
      pool.reset();
      std::atomic<int> hits{0};
      own.run(10, [&](int, int) { hits.fetch_add(1); });
      right &= hits == 10 && own.has_workers();
    }
    _exit(right ? 0 : 1);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}
#endif

/// Jobs that no thread executes are not kept.
void test_jobs_without_workers_go() {
  Pool pool(3);
  const pid_t child = fork();
  if (child == 0) {
    const auto kept = std::make_shared<int>();
    for (int i = 0; i < 5; ++i) pool.run(4, [kept](int, int) {});
    _exit(kept.use_count() == 1 ? 0 : 1);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}

/// A process that was forked has no workers: it must neither wait for them nor crash.
void test_fork() {
  Pool* pool = new Pool(3);
  std::atomic<int> ran{0};
  pool->run(10, [&](int, int) { ran.fetch_add(1); });
  const auto before = pool->start(10, [](int, int) {});
  const pid_t child = fork();
  if (child == 0) {
    bool refused = false;
    try {
      pool->wait(*before);
    } catch (const std::runtime_error&) {
      refused = pool->is_forked();
    }
    delete pool;
    _exit(refused ? 0 : 1);
  }
  pool->wait(*before);
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
    test_queue(threads);
    if (threads > 1) test_many_callers(threads);
  }
  test_fork();
#ifndef WZ_TSAN
  test_forked_child_with_threads();
#endif
  test_jobs_without_workers_go();
  CHECK_THROWS(std::invalid_argument, Pool(0));
  Pool pool(1);
  CHECK_THROWS(std::invalid_argument, pool.run(Pool::kMaxCount + 1, [](int, int) {}));
  // Threads that were never given work end too.
  for (int i = 0; i < 50; ++i) Pool idle(3);
  return check::finish();
}
