#include "tests/crash/client.hpp"

#include <charconv>

namespace sluice::crash {

using jobs::error_code;

answer answer_for(error_code code) noexcept {
  switch (code) {
    case error_code::io_error:
    case error_code::corrupt:
    case error_code::unavailable:
      return answer::none;
    default:
      return answer::no;
  }
}

batch_answer client::push_batch(const std::vector<jobs::job_spec>& specs, const jobs::job_spec&,
                                const jobs::job_spec&) {
  return {answer::no,
          std::vector<push_answer>(specs.size(), push_answer{answer::no, false, 0, {}})};
}

std::string contents_of(const jobs::job_spec& spec) {
  return spec.queue + " " + spec.kind + " " + std::to_string(spec.priority) + " " + spec.args.data;
}

token token_of(std::string_view args) {
  constexpr std::string_view name = "\"token\":";
  const auto at = args.find(name);
  if (at == std::string_view::npos) return 0;
  token found = 0;
  const auto* const from = args.data() + at + name.size();
  std::from_chars(from, args.data() + args.size(), found);
  return found;
}

push_answer answer_of(const jobs::result<jobs::push_receipt>& receipt) {
  using fate = jobs::push_receipt::fate;
  if (!receipt) {
    const auto code = receipt.error().code;
    return {answer_for(code), code == error_code::duplicate, 0, std::string(to_string(code))};
  }
  if (receipt->outcome == fate::accepted) return {answer::yes, false, receipt->id, {}};
  const bool is_duplicate = receipt->outcome == fate::duplicate;
  return {answer::no, is_duplicate, 0, std::string(to_string(receipt->outcome))};
}

taken_job taken(const jobs::job& job, jobs::lease_ref lease) {
  return {lease, contents_of(job.spec), token_of(job.spec.args.data),
          job.result ? job.result->data : std::string(), job.attempts + 1};
}

jobs::failure requested_failure() {
  jobs::failure failed;
  failed.type = "crash";
  failed.message = "asked to";
  return failed;
}

}  // namespace sluice::crash
