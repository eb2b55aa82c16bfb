#include <string>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/progress_bar.hpp"
#include "jobs/cli/store_file.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/store/sqlite/store_backup.hpp"

namespace sluice::jobs::cli {

int run(const backup_arguments& what, const console& to) {
  progress_bar bar(to, {.doing = "copying", .unit = "B", .quiet = what.quiet});
  const auto copied = backup_store(store_file(what.data), what.file, [&](const backup_progress& p) {
    bar.set_total(p.total_bytes);
    bar.at(p.done_bytes);
  });
  bar.finish();
  if (!copied) return static_cast<int>(to.complain(copied.error()));
  if (what.json) {
    std::string text;
    json::json_writer out(text);
    out.begin_object().key("file").value(what.file).key("bytes").value(*copied).end_object();
    to.line(text);
  } else {
    to.line(byte_size(*copied) + " copied to " + what.file + " in " + about(bar.took()));
  }
  return static_cast<int>(exit_code::ok);
}

}  // namespace sluice::jobs::cli
