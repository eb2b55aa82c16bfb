// The snippets of docs/reference/batching.md.
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sluice/executor/thread_pool.hpp"
#include "sluice/flow/batcher.hpp"
#include "sluice/flow/fan_in.hpp"
#include "sluice/flow/fan_out.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/queue/bounded_queue.hpp"

namespace {

using namespace std::chrono_literals;

struct row {
  int number = 0;
};

bool rows_by_the_dozen() {
  std::size_t written = 0;
  sluice::thread_pool pool(2);
  {
    sluice::batcher<row> rows({.size = 12, .wait = 20ms}, pool, [&](const std::vector<row>& batch) {
      written += batch.size();  // one INSERT
    });
    for (int i = 0; i < 100; ++i) {
      if (!rows.push({i})) return false;
    }
  }  // the remaining rows are written too
  return written == 100;
}

bool batches_taken() {
  sluice::batcher<row> rows({.size = 3, .wait = 20ms});
  for (int i = 0; i < 5; ++i) {
    if (!rows.push({i})) return false;
  }
  rows.close();
  std::string sizes;
  while (auto batch = rows.take()) sizes += std::to_string(batch->size()) + ' ';
  return sizes == "3 2 ";
}

sluice::task<sluice::flow_ended> out_and_in(sluice::bounded_queue<int>& source,
                                            sluice::bounded_queue<int>& all) {
  sluice::bounded_queue<int> left(4);
  sluice::bounded_queue<int> right(4);
  const std::vector lines{&left, &right};  // named: g++ 12 takes no braces in a co_await
  auto [out, in] = co_await sluice::when_all(sluice::distribute(&source, lines),
                                             sluice::fan_in(lines, &all));
  co_return out == sluice::flow_ended::source_ended ? in : out;
}

bool nothing_is_lost() {
  sluice::bounded_queue<int> source(100);
  sluice::bounded_queue<int> all(100);
  for (int i = 0; i < 100; ++i) {
    if (!source.push(i)) return false;
  }
  source.close();
  return sync_wait(out_and_in(source, all)) == sluice::flow_ended::source_ended &&
         all.size() == 100;
}

}  // namespace

int main() {
  return rows_by_the_dozen() && batches_taken() && nothing_is_lost() ? 0 : 1;
}
