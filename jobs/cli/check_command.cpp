#include <string>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/progress_bar.hpp"
#include "jobs/cli/store_file.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/store/sqlite/store_check.hpp"

namespace sluice::jobs::cli {
namespace {

std::string to_json(const store_report& r, const std::string& file) {
  std::string text;
  json::json_writer out(text);
  out.begin_object().key("file").value(file).key("ok").value(r.is_sound());
  out.key("jobs").value(r.jobs).key("queues").value(r.queues).key("batches").value(r.batches);
  out.key("unverified").value(r.unverified);
  out.key("problems").begin_array();
  for (const std::string& p : r.problems) out.value(p);
  out.end_array().key("problems_left_out").value(r.problems_left_out).end_object();
  return text;
}

}  // namespace

int run(const check_arguments& args, const console& io) {
  const std::string file = store_file(args.path);
  progress_bar bar(io, {.doing = "checking", .unit = "jobs", .quiet = args.quiet});
  const auto report = check_store(file, [&](const check_progress& p) {
    bar.set_total(p.total);
    bar.note(std::string(p.part));
    bar.at(p.done);
  });
  bar.finish();
  if (!report) return static_cast<int>(io.complain(report.error()));
  if (args.json) {
    io.line(to_json(*report, file));
  } else {
    for (const std::string& p : report->problems) io.line(p);
    if (report->problems_left_out > 0) {
      io.line("and " + counted(report->problems_left_out, "more problem", "more problems"));
    }
    const std::string summary =
        counted(report->jobs, "job", "jobs") + " in " + counted(report->queues, "queue", "queues") +
        ", " + counted(report->batches, "batch", "batches") +
        (report->unverified == 0 ? ""
                                 : ", " + counted(report->unverified, "job", "jobs") +
                                       " without a checksum (from an older format)");
    if (report->is_sound()) {
      io.line(file + " is sound: " + summary);
    } else {
      io.complain(
          exit_code::bad_store,
          file + " is damaged: " +
              counted(report->problems.size() + report->problems_left_out, "problem", "problems") +
              " (" + summary + "); restore a backup that 'sluice check' finds sound");
    }
  }
  return static_cast<int>(report->is_sound() ? exit_code::ok : exit_code::bad_store);
}

}  // namespace sluice::jobs::cli
