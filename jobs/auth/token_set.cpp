#include "jobs/auth/token_set.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>

#include "jobs/json/base64.hpp"
#include "jobs/json/json_reader.hpp"
#include "jobs/json/json_writer.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs {
namespace {

constexpr std::string_view prefix = "slk_";
constexpr std::size_t id_chars = 8;
constexpr std::size_t secret_bytes = 32;
constexpr std::size_t secret_chars = 43;  // of 32 bytes in base64 without padding
// Without letters that resemble others or a digit.
constexpr std::string_view id_alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
static_assert(id_alphabet.size() == 32);

template <std::size_t N>
std::array<std::uint8_t, N> random_bytes() {
  std::array<std::uint8_t, N> bytes{};
  check(RAND_bytes(bytes.data(), static_cast<int>(N)) == 1, "sluice::jobs::token_set",
        "a working random number generator");
  return bytes;
}

std::string new_id() {
  std::string id;
  for (const std::uint8_t byte : random_bytes<id_chars>()) id += id_alphabet[byte % 32];
  return id;
}

// Base64url (RFC 4648, section 5): needs no quoting in a header or a shell.
std::string new_secret() {
  const auto bytes = random_bytes<secret_bytes>();
  std::string text;
  json::append_base64(text, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  text.resize(secret_chars);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

token::hash sha256_of(std::string_view secret) {
  token::hash digest{};
  unsigned size = 0;
  const int ok =
      EVP_Digest(secret.data(), secret.size(), digest.data(), &size, EVP_sha256(), nullptr);
  check(ok == 1 && size == digest.size(), "sluice::jobs::token_set", "an OpenSSL with SHA-256");
  return digest;
}

std::string hex_of(const token::hash& hash) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const std::uint8_t byte : hash) {
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
  }
  return out;
}

std::optional<token::hash> hash_of_hex(std::string_view text) {
  static constexpr std::string_view digits = "0123456789abcdef";
  token::hash hash{};
  if (text.size() != 2 * hash.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t value = digits.find(text[i]);
    if (value == std::string_view::npos) return std::nullopt;
    hash[i / 2] = static_cast<std::uint8_t>((std::size_t{hash[i / 2]} << 4U) | value);
  }
  return hash;
}

error unauthenticated(std::string why) {
  return {error_code::unauthenticated, std::move(why)};
}

// Returns nullopt if the token is usable.
std::optional<error> fault_of(const token& t, unix_time now) {
  if (t.disabled) return unauthenticated("the token " + t.id + " was revoked");
  if (t.expires_at && *t.expires_at <= now) {
    return unauthenticated("the token " + t.id + " has expired");
  }
  return std::nullopt;
}

bool is_id(std::string_view text) {
  return text.size() == id_chars && text.find_first_not_of(id_alphabet) == std::string_view::npos;
}

void_result validate(const token_request& request, unix_time now) {
  const auto invalid = [](std::string why) { return error{error_code::invalid, std::move(why)}; };
  if (request.name.empty() || request.name.size() > token_set::name_bytes_max) {
    return invalid("a token needs a name of 1 to " + std::to_string(token_set::name_bytes_max) +
                   " bytes that identifies its holder");
  }
  if (request.roles.empty())
    return invalid("a token needs at least one role: push, work, read, admin");
  if (request.queues.size() > token_set::queues_max) {
    return invalid("a token can have at most " + std::to_string(token_set::queues_max) + " queues");
  }
  for (const std::string& pattern : request.queues) {
    if (auto valid = validate_queue_pattern(pattern); !valid) return valid;
  }
  if (request.expires_at && *request.expires_at <= now) {
    return invalid("the expiry time of the token is in the past");
  }
  return done{};
}

// ---- the file's text

constexpr std::array<std::string_view, 8> fields = {
    "id", "name", "roles", "queues", "created_at", "expires_at", "disabled", "sha256"};

role_set read_roles(json::json_reader& in) {
  role_set roles;
  for (in.begin_array(); in.next_element();) {
    const auto known = role_from(in.word());
    if (!known) {
      in.refuse("expected push, work, read or admin");
    } else {
      roles.add(*known);
    }
  }
  if (in.ok() && roles.empty()) in.refuse_object("a token has at least one role");
  return roles;
}

std::vector<std::string> read_queues(json::json_reader& in) {
  std::vector<std::string> queues;
  for (in.begin_array(); in.next_element();) {
    queues.push_back(in.string());
    if (const auto valid = validate_queue_pattern(queues.back()); in.ok() && !valid) {
      in.refuse(valid.error().message);
    }
    if (queues.size() > token_set::queues_max) in.refuse("too many queues");
  }
  return queues;
}

void read_field(json::json_reader& in, std::size_t which, token& t) {
  switch (which) {
    case 0:
      t.id = in.string();
      if (in.ok() && !is_id(t.id))
        in.refuse("expected 8 characters of " + std::string(id_alphabet));
      return;
    case 1:
      t.name = in.string();
      if (t.name.size() > token_set::name_bytes_max) in.refuse("expected a shorter name");
      return;
    case 2:
      t.roles = read_roles(in);
      return;
    case 3:
      t.queues = read_queues(in);
      return;
    case 4:
      t.created_at = in.time();
      return;
    case 5:
      if (!in.skip_null()) t.expires_at = in.time();
      return;
    case 6:
      t.disabled = in.boolean();
      return;
    default:
      if (const auto hash = hash_of_hex(in.word())) {
        t.sha256 = *hash;
      } else {
        in.refuse("expected 64 hexadecimal digits in lower case");
      }
  }
}

token read_token(json::json_reader& in) {
  token t;
  std::array<bool, fields.size()> seen{};
  std::string_view key;
  for (in.begin_object(); in.next_key(key);) {
    const auto at = static_cast<std::size_t>(std::ranges::find(fields, key) - fields.begin());
    if (at == fields.size()) {
      in.refuse_key(key, fields);
      continue;
    }
    in.name_member(fields[at]);
    if (std::exchange(seen[at], true)) in.refuse("duplicate field");
    read_field(in, at, t);
  }
  for (const std::size_t needed : {0U, 1U, 2U, 4U, 7U}) {
    if (in.ok() && !seen[needed]) {
      in.refuse_object("the field \"" + std::string(fields[needed]) + "\" is missing");
    }
  }
  return t;
}

}  // namespace

result<token_set> token_set::parse(std::string_view text) {
  static constexpr std::array<std::string_view, 2> known = {"version", "tokens"};
  token_set all;
  json::json_reader in(text);
  std::string_view key;
  bool has_version = false;
  for (in.begin_object(); in.next_key(key);) {
    if (key == known[0]) {
      in.name_member(known[0]);
      has_version = in.natural(1, 1) == 1;
    } else if (key == known[1]) {
      in.name_member(known[1]);
      for (in.begin_array(); in.next_element();) {
        token t = read_token(in);
        if (in.ok() && all.places_.contains(t.id)) {
          in.refuse_object("two tokens have the id " + t.id);
        }
        if (all.tokens_.size() == tokens_max) {
          in.refuse_object("more than " + std::to_string(tokens_max) + " tokens");
        }
        if (!in.ok()) break;
        all.places_.emplace(t.id, all.tokens_.size());
        all.tokens_.push_back(std::make_shared<const token>(std::move(t)));
      }
    } else {
      in.refuse_key(key, known);
    }
  }
  if (in.ok() && !has_version) in.refuse_object("the field \"version\" is missing");
  if (auto read = in.finish(); !read) return error{error_code::corrupt, read.error().message};
  return all;
}

std::string token_set::text() const {
  // One line per token: people also read this file and put it under version control.
  std::string out = "{\"version\":1,\"tokens\":[";
  for (const auto& t : tokens_) {
    out += t == tokens_.front() ? "\n" : ",\n";
    json::json_writer w(out);
    w.begin_object().key("id").value(t->id).key("name").value(t->name).key("roles").begin_array();
    for (const role r : all_roles) {
      if (t->roles.names(r)) w.value(to_string(r));
    }
    w.end_array();
    if (!t->queues.empty()) {
      w.key("queues").begin_array();
      for (const std::string& q : t->queues) w.value(q);
      w.end_array();
    }
    w.key("created_at").value(t->created_at);
    if (t->expires_at) w.key("expires_at").value(*t->expires_at);
    if (t->disabled) w.key("disabled").value(true);
    w.key("sha256").value(hex_of(t->sha256)).end_object();
  }
  return out + "\n]}\n";
}

result<token_set::created> token_set::create(token_request request, unix_time now) {
  if (auto valid = validate(request, now); !valid) return valid.error();
  if (tokens_.size() >= tokens_max) {
    return error{error_code::too_large, "the limit of " + std::to_string(tokens_max) +
                                            " tokens is reached; remove unused tokens first"};
  }
  token t{.name = std::move(request.name),
          .roles = request.roles,
          .queues = std::move(request.queues),
          .created_at = now,
          .expires_at = request.expires_at};
  do {
    t.id = new_id();
  } while (places_.contains(t.id));
  const std::string secret = new_secret();
  t.sha256 = sha256_of(secret);
  places_.emplace(t.id, tokens_.size());
  tokens_.push_back(std::make_shared<const token>(t));
  std::string text = std::string(prefix) + t.id + "_" + secret;
  return created{std::move(text), std::move(t)};
}

std::shared_ptr<const token>* token_set::find(std::string_view id) {
  const auto found = places_.find(id);
  return found == places_.end() ? nullptr : &tokens_[found->second];
}

void token_set::rebuild_index() {
  places_.clear();
  for (std::size_t i = 0; i < tokens_.size(); ++i) places_.emplace(tokens_[i]->id, i);
}

namespace {

error no_token(std::string_view id) {
  // The text may be a whole token: an error must not copy it into a log.
  return {error_code::not_found, is_id(id) ? "token " + std::string(id) + " does not exist"
                                           : "not a token id: expected the eight letters and "
                                             "digits after slk_"};
}

}  // namespace

result<token> token_set::revoke(std::string_view id) {
  auto* const found = find(id);
  if (found == nullptr) return no_token(id);
  token changed = **found;
  changed.disabled = true;
  *found = std::make_shared<const token>(changed);
  return changed;
}

result<token> token_set::remove(std::string_view id) {
  auto* const found = find(id);
  if (found == nullptr) return no_token(id);
  token gone = **found;
  tokens_.erase(tokens_.begin() + (found - tokens_.data()));
  rebuild_index();
  return gone;
}

bool token_set::has_usable(unix_time now) const noexcept {
  return std::ranges::any_of(tokens_, [&](const auto& t) {
    return !t->disabled && (!t->expires_at || *t->expires_at > now);
  });
}

result<identity> token_set::authenticate(std::string_view text, unix_time now) const {
  static const token dummy{};
  std::string_view rest = text;
  if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  const std::string_view id = rest.substr(0, std::min(rest.size(), id_chars));
  const bool has_form = text.size() == prefix.size() + id_chars + 1 + secret_chars &&
                        text.starts_with(prefix) && is_id(id) && rest[id_chars] == '_';
  if (!has_form) {
    return unauthenticated("invalid token: expected the form slk_ID_SECRET");
  }
  const auto found = places_.find(id);
  const bool is_known = found != places_.end();
  const token& t = is_known ? *tokens_[found->second] : dummy;
  const token::hash hash = sha256_of(rest.substr(id_chars + 1));
  const bool is_same = CRYPTO_memcmp(hash.data(), t.sha256.data(), hash.size()) == 0;
  if (!is_known || !is_same) return unauthenticated("unknown token or wrong secret");
  if (auto fault = fault_of(t, now)) return *std::move(fault);
  return identity(tokens_[found->second]);
}

result<identity> token_set::renew(const identity& caller, unix_time now) const {
  if (caller.is_local()) {
    return unauthenticated(
        "the server now needs a token, in the header Authorization: Bearer slk_ID_SECRET");
  }
  const auto found = places_.find(caller.id());
  if (found == places_.end() || tokens_[found->second]->sha256 != caller.token_->sha256) {
    return unauthenticated("the token " + std::string(caller.id()) + " was removed");
  }
  if (auto fault = fault_of(*tokens_[found->second], now)) return *std::move(fault);
  return identity(tokens_[found->second]);
}

result<identity> token_set::authorize(std::string_view text, const need& permission,
                                      unix_time now) const {
  auto caller = authenticate(text, now);
  if (!caller) return caller;
  if (!caller->may(permission.required)) return caller->refusal(permission.required);
  if (!permission.queue.empty() && !caller->may(permission.required, permission.queue)) {
    return caller->refusal(permission.required, permission.queue);
  }
  return caller;
}

}  // namespace sluice::jobs
