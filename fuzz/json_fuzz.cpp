// A JSON text, read as each type of the API. A value that was read can be written, and read again
// with the same result.

#include <string>
#include <vector>

#include "fuzz/fuzz_target.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/json/json_reader.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

namespace {

template <class T>
void try_type(std::string_view text) {
  constexpr json::read_context context{.now = {1'767'225'600'000}};
  const auto value = json::read<T>(text, context);
  if (!value) {
    claim(!value.error().message.empty(), "a reason");
    return;
  }
  const std::string written = json::to_json(*value);
  const auto again = json::read<T>(written, context);
  claim(again.has_value(), "the written text to be readable");
  claim(json::to_json(*again) == written, "the same value again");
}

template <class... T>
void try_types(std::string_view text) {
  (try_type<T>(text), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = sluice::fuzz::text_of(data, size);
  const bool is_json = json::check_json(text).has_value();

  json::json_reader in(text);
  const std::string_view raw = in.raw();
  const bool read = in.finish().has_value();
  claim(read == is_json, "both parsers to agree");
  claim(!read || json::check_json(raw).has_value(), "the value itself to be JSON");

  try_types<job_spec, json::push_call>(text);
  if (!is_json) return 0;
  // Requests of clients, then replies of servers.
  using json::cron_check, json::cron_times, json::cancel_receipt, json::retry_receipt;
  try_types<json::lease_call, json::extend_call, json::ack_call, json::fail_call,
            json::release_call, json::acks_call, queue_patch, json::progress_call, json::log_call,
            batch_spec, cron_spec, cron_patch, cron_check>(text);
  try_types<job, job_page, push_receipt, std::vector<result<push_receipt>>, std::vector<leased_job>,
            extension, fail_receipt, std::vector<void_result>, queue_info, std::vector<queue_info>,
            json::purge_receipt, engine_stats, json::problem>(text);
  try_types<batch_info, batch_page, batch_receipt, cancel_receipt, retry_receipt, cron_info,
            std::vector<cron_info>, cron_times, log_page>(text);
  return 0;
}
