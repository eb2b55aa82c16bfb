#include <string>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/progress_bar.hpp"
#include "jobs/cli/store_file.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/store/sqlite/store_backup.hpp"

namespace sluice::jobs::cli {

int run(const backup_arguments& args, const console& io) {
  progress_bar bar(io, {.doing = "copying", .unit = "B", .quiet = args.quiet});
  const auto copied = backup_store(store_file(args.data), args.file, [&](const backup_progress& p) {
    bar.set_total(p.total_bytes);
    bar.at(p.done_bytes);
  });
  bar.finish();
  if (!copied) return static_cast<int>(io.complain(copied.error()));
  if (args.json) {
    std::string text;
    json::json_writer out(text);
    out.begin_object().key("file").value(args.file).key("bytes").value(*copied).end_object();
    io.line(text);
  } else {
    io.line(byte_size(*copied) + " copied to " + args.file + " in " + short_duration(bar.took()));
  }
  return static_cast<int>(exit_code::ok);
}

}  // namespace sluice::jobs::cli
