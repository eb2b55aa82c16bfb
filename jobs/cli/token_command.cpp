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

exit_code list(const token_arguments& what, const std::string& file, const console& to) {
  const auto all = load_tokens(file);
  if (!all) return to.complain(all.error());
  if (what.json) {
    std::string text;
    json::json_writer out(text);
    out.begin_object().key("tokens").begin_array();
    for (const auto& t : all->list()) {
      write(out, *t);
      out.end_object();
    }
    out.end_array().end_object();
    to.line(text);
    return exit_code::ok;
  }
  if (all->empty()) {
    to.note("there are no tokens in " + file + ": make one with 'sluice token create'");
    return exit_code::ok;
  }
  const unix_time now = real_time().now();
  table t({{"ID"}, {"NAME"}, {"ROLES"}, {"QUEUES"}, {"CREATED"}, {"EXPIRES"}, {""}});
  for (const auto& one : all->list()) {
    t.add({one->id, one->name, to_string(one->roles), scope_of(*one), ago(one->created_at, now),
           one->expires_at ? ago(*one->expires_at, now) : "-", state_of(*one, now)});
  }
  to.print(t.text(to.style()));
  return exit_code::ok;
}

constexpr const char* takes_effect = "a server that runs takes this up within two seconds";

exit_code create(const token_arguments& what, const std::string& file, const console& to) {
  const unix_time now = real_time().now();
  token_request make = what.make;
  if (what.lasts) make.expires_at = now + *what.lasts;
  const auto made =
      change_tokens(file, [&](token_set& all) { return all.create(std::move(make), now); });
  if (!made) return to.complain(made.error());
  if (what.json) {
    std::string text;
    json::json_writer out(text);
    write(out, made->what);
    out.key("token").value(made->text).end_object();
    to.line(text);
    return exit_code::ok;
  }
  const token& t = made->what;
  to.note("token " + t.id + " for " + t.name + ": " + to_string(t.roles) + ", in " + scope_of(t) +
          (t.expires_at ? ", until " + format_time(*t.expires_at) : ""));
  to.note("it is shown here and nowhere else; " + std::string(takes_effect));
  to.line(made->text);
  return exit_code::ok;
}

exit_code revoke(const token_arguments& what, const std::string& file, const console& to) {
  const auto gone = change_tokens(file, [&](token_set& all) { return all.revoke(what.id); });
  if (!gone) return to.complain(gone.error());
  if (what.json) {
    std::string text;
    json::json_writer out(text);
    write(out, *gone);
    out.end_object();
    to.line(text);
    return exit_code::ok;
  }
  to.line("token " + gone->id + " for " + gone->name + " is revoked");
  to.note(takes_effect);
  return exit_code::ok;
}

}  // namespace

int run(const token_arguments& what, const console& to) {
  const std::string file = token_file_in(what.data);
  using action = token_arguments::action;
  switch (what.what) {
    case action::list:
      return static_cast<int>(list(what, file, to));
    case action::create:
      return static_cast<int>(create(what, file, to));
    case action::revoke:
      break;
  }
  return static_cast<int>(revoke(what, file, to));
}

}  // namespace sluice::jobs::cli
