#include "jobs/cli/connection.hpp"

#include <string>

namespace sluice::jobs::cli {
namespace {

// Returns the first line of the file, without its line end.
result<std::string> read_token(const std::string& file) {
  constexpr std::size_t bytes_max = 4096;
  auto text = read_file(file, bytes_max);
  if (!text) return text;
  std::string token = text->substr(0, text->find_first_of("\r\n"));
  token.erase(token.find_last_not_of(" \t") + 1);
  if (token.empty()) return error{error_code::invalid, "the token file " + file + " is empty"};
  return token;
}

}  // namespace

result<client> connect(const connection_arguments& server) {
  client_options o{.url = server.url, .ca_file = server.ca_file, .user_agent = "sluice-cli"};
  if (!server.token_file.empty()) {
    auto token = read_token(server.token_file);
    if (!token) return token.error();
    o.token = std::move(*token);
  }
  return client::open(std::move(o));
}

}  // namespace sluice::jobs::cli
