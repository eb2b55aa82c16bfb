#include "jobs/engine/detail/answers.hpp"

#include "jobs/engine/detail/waiting.hpp"

namespace sluice::jobs::detail {

answers::~answers() = default;

void answers::destroy_later(std::unique_ptr<waiting> ended) {
  ended_.push_back(std::move(ended));
}

void answers::deliver() noexcept {
  std::apply(
      [](auto&... lists) {
        const auto give = [](auto& some) {
          for (auto& a : some) a.reply.set_value(std::move(a.value));
          some.clear();
        };
        (give(lists), ...);
      },
      all_);
  ended_.clear();
}

}  // namespace sluice::jobs::detail
