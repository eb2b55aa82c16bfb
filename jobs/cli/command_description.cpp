#include "jobs/cli/command_description.hpp"

namespace sluice::jobs::cli {

std::vector<std::string> flag_description::choices() const {
  std::vector<std::string> words;
  if (value.find('|') == std::string::npos || value.find('[') != std::string::npos) return words;
  std::size_t at = 0;
  for (auto bar = value.find('|'); bar != std::string::npos; bar = value.find('|', at)) {
    words.push_back(value.substr(at, bar - at));
    at = bar + 1;
  }
  words.push_back(value.substr(at));
  return words;
}

}  // namespace sluice::jobs::cli
