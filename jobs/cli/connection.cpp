#include "jobs/cli/connection.hpp"

#include <string>

namespace sluice::jobs::cli {
namespace {

// The first line, so that an editor's line end does no harm.
result<std::string> read_token(const std::string& file) {
  constexpr std::size_t bytes_max = 4096;
  auto text = read_file(file, bytes_max);
  if (!text) return text;
  std::string token = text->substr(0, text->find_first_of("\r\n"));
  token.erase(token.find_last_not_of(" \t") + 1);
  if (token.empty()) return error{error_code::invalid, "there is no token in " + file};
  return token;
}

}  // namespace

result<client> connect(const connection_arguments& to) {
  client_options o{.url = to.url, .ca_file = to.ca_file, .user_agent = "sluice-cli"};
  if (!to.token_file.empty()) {
    auto token = read_token(to.token_file);
    if (!token) return token.error();
    o.token = std::move(*token);
  }
  return client::open(std::move(o));
}

}  // namespace sluice::jobs::cli
