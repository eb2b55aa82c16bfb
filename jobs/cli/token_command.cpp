#include <string>
#include <vector>

#include "jobs/auth/token_file.hpp"
#include "jobs/cli/commands.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/json/text.hpp"

namespace sluice::jobs::cli {
namespace {

std::string scope_of(const token& t) {
  if (t.queues.empty()) return "every queue";
  std::string text;
  for (const std::string& q : t.queues) text += (text.empty() ? "" : ", ") + q;
  return text;
}

std::string state_of(const token& t, unix_time now) {
  if (t.disabled) return "revoked";
  if (t.expires_at && *t.expires_at <= now) return "expired";
  return "";
}

void write(json::json_writer& out, const token& t) {
  out.begin_object().key("id").value(t.id).key("name").value(t.name).key("roles").begin_array();
  for (const role r : all_roles) {
    if (t.roles.names(r)) out.value(to_string(r));
  }
  out.end_array().key("queues").begin_array();
  for (const std::string& q : t.queues) out.value(q);
  out.end_array().key("created_at").value(t.created_at);
  if (t.expires_at) out.key("expires_at").value(*t.expires_at);
  out.key("revoked").value(t.disabled);
}

exit_code list(const token_arguments& args, const std::string& file, const console& io) {
  const auto all = load_tokens(file);
  if (!all) return io.complain(all.error());
  if (args.json) {
    std::string text;
    json::json_writer out(text);
    out.begin_object().key("tokens").begin_array();
    for (const auto& t : all->list()) {
      write(out, *t);
      out.end_object();
    }
    out.end_array().end_object();
    io.line(text);
    return exit_code::ok;
  }
  if (all->empty()) {
    io.note("no tokens in " + file + "; create one with 'sluice token create'");
    return exit_code::ok;
  }
  const unix_time now = real_time().now();
  table t({{"ID"}, {"NAME"}, {"ROLES"}, {"QUEUES"}, {"CREATED"}, {"EXPIRES"}, {""}});
  for (const auto& one : all->list()) {
    t.add({one->id, one->name, to_string(one->roles), scope_of(*one), ago(one->created_at, now),
           one->expires_at ? ago(*one->expires_at, now) : "-", state_of(*one, now)});
  }
  io.print(t.text(io.style()));
  return exit_code::ok;
}

constexpr const char* takes_effect = "a running server applies this within two seconds";

exit_code create(const token_arguments& args, const std::string& file, const console& io) {
  const unix_time now = real_time().now();
  token_request make = args.make;
  if (args.lasts) make.expires_at = now + *args.lasts;
  const auto made =
      change_tokens(file, [&](token_set& all) { return all.create(std::move(make), now); });
  if (!made) return io.complain(made.error());
  if (args.json) {
    std::string text;
    json::json_writer out(text);
    write(out, made->info);
    out.key("token").value(made->text).end_object();
    io.line(text);
    return exit_code::ok;
  }
  const token& t = made->info;
  io.note("token " + t.id + " for " + t.name + ": " + to_string(t.roles) + ", in " + scope_of(t) +
          (t.expires_at ? ", until " + format_time(*t.expires_at) : ""));
  io.note("the token is shown only once; " + std::string(takes_effect));
  io.line(made->text);
  return exit_code::ok;
}

exit_code revoke(const token_arguments& args, const std::string& file, const console& io) {
  const auto gone = change_tokens(file, [&](token_set& all) { return all.revoke(args.id); });
  if (!gone) return io.complain(gone.error());
  if (args.json) {
    std::string text;
    json::json_writer out(text);
    write(out, *gone);
    out.end_object();
    io.line(text);
    return exit_code::ok;
  }
  io.line("token " + gone->id + " for " + gone->name + " is revoked");
  io.note(takes_effect);
  return exit_code::ok;
}

}  // namespace

int run(const token_arguments& args, const console& io) {
  const std::string file = token_file_in(args.data);
  using action = token_arguments::action;
  switch (args.operation) {
    case action::list:
      return static_cast<int>(list(args, file, io));
    case action::create:
      return static_cast<int>(create(args, file, io));
    case action::revoke:
      break;
  }
  return static_cast<int>(revoke(args, file, io));
}

}  // namespace sluice::jobs::cli
