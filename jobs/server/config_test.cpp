// Settings from flags, the environment, a file and defaults, and errors in the file.
#include "jobs/server/config.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <sstream>

#include "jobs/server/config_keys.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::config_test {
namespace {

using namespace std::chrono_literals;

class Config : public ::testing::Test {
 protected:
  std::string write(const std::string& text, const std::string& name = "sluice.toml") {
    std::ofstream(folder_.file(name)) << text;
    return folder_.file(name);
  }
  config_sources sources(const std::string& text) {
    return {.file = write(text), .environment = [this](const char* name) {
              const auto found = variables_.find(name);
              return found == variables_.end() ? nullptr : found->second.c_str();
            }};
  }
  configuration load(const std::string& text) {
    auto c = load_configuration(sources(text));
    EXPECT_TRUE(c) << c.error().message;
    return c ? *std::move(c) : configuration{};
  }
  // Returns the errors of a file, without its folder.
  std::string wrong(const std::string& text) {
    const auto c = load_configuration(sources(text));
    EXPECT_FALSE(c) << text;
    if (c) return "";
    EXPECT_EQ(c.error().code, error_code::invalid);
    std::string message = c.error().message;
    for (auto at = message.find(folder_.path()); at != std::string::npos;
         at = message.find(folder_.path())) {
      message.erase(at, folder_.path().size() + 1);
    }
    return message;
  }
  std::string from(const configuration& c, std::string_view key) {
    for (const auto& s : c.settings) {
      if (s.name == key) return s.from.substr(s.from.rfind('/') + 1);
    }
    return "none";
  }

  sluice::testing::temporary_folder folder_;
  std::map<std::string, std::string> variables_;
};

TEST_F(Config, IsTheDefaultsWithoutSources) {
  const auto c = load("");
  EXPECT_EQ(c.options.listen, listen_address{});
  EXPECT_EQ(c.options.sync, sync_mode::full);
  EXPECT_EQ(from(c, "listen"), "default");
  EXPECT_EQ(c.settings.size(), config_keys().size());
}

TEST_F(Config, TakesFlagsBeforeTheEnvironmentBeforeTheFile) {
  auto s = sources("shutdown_grace = '1s'\nsync_interval = '1s'\nlisten = ':1'\n");
  variables_ = {{"SLUICE_SYNC_INTERVAL", "2s"}, {"SLUICE_LISTEN", ":2"}};
  s.flags = {{"listen", ":3"}};
  const auto c = load_configuration(s);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->options.shutdown_grace, 1s);
  EXPECT_EQ(c->options.sync_interval, 2s);
  EXPECT_EQ(c->options.listen.port, 3);
  EXPECT_EQ(from(*c, "shutdown_grace"), "sluice.toml:1");
  EXPECT_EQ(from(*c, "sync_interval"), "SLUICE_SYNC_INTERVAL");
  EXPECT_EQ(from(*c, "listen"), "--listen");
  EXPECT_EQ(from(*c, "data"), "default");
}

TEST_F(Config, IsFoundInTheDataFolderOrByTheEnvironment) {
  auto s = sources("log.level = 'debug'\n");
  s.file.clear();
  EXPECT_EQ(load_configuration(s)->options.log.level, log_level::info);
  s.flags = {{"data", folder_.path()}};
  EXPECT_EQ(load_configuration(s)->options.log.level, log_level::debug);
  s.flags.clear();
  variables_["SLUICE_DATA"] = folder_.path();
  EXPECT_EQ(load_configuration(s)->options.log.level, log_level::debug);
  variables_ = {{"SLUICE_CONFIG", write("log.level = 'warn'\n", "other.toml")}};
  EXPECT_EQ(load_configuration(s)->options.log.level, log_level::warn);
  variables_ = {{"SLUICE_CONFIG", folder_.file("none.toml")}};
  const auto none = load_configuration(s);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, error_code::not_found);
  EXPECT_NE(none.error().message.find("none.toml"), std::string::npos);
}

// Sets every key, from every source, to a value that is not its default.
TEST_F(Config, SetsEveryKeyFromEverywhere) {
  const std::string password = write("open sesame", "password");
  ASSERT_EQ(::chmod(password.c_str(), 0600), 0);
  for (const config_key& key : config_keys()) {
    using kind = config_key::kind;
    std::string text;
    std::string toml;
    switch (key.type) {
      case kind::flag:
        text = toml = "true";
        break;
      case kind::count:
        text = toml = std::to_string(key.least + 1);
        break;
      case kind::size:
        text = std::to_string(key.least + 1) + "B";
        toml = "\"" + text + "\"";
        break;
      case kind::duration:
        text = std::to_string(key.least + 1) + "ms";
        toml = "\"" + text + "\"";
        break;
      case kind::list:
        text = "http://a,http://b";
        toml = R"(["http://a", "http://b"])";
        break;
      case kind::custom:
        text = key.name.ends_with("listen") ? "127.0.0.1:9" : "off";
        toml = "\"" + text + "\"";
        break;
      case kind::text:
      case kind::path:
        text = key.name == "faktory.password_file" ? password : "/some/where/else";
        toml = "\"" + text + "\"";
    }
    // The certificate and its key are set together or not at all, and TLS takes both.
    const std::string others = key.name == "tls.cert"        ? "tls.key = '/x'\n"
                               : key.name == "tls.key"       ? "tls.cert = '/x'\n"
                               : key.name == "beanstalk.tls" ? "tls = {cert = '/x', key = '/x'}\n"
                                                             : "";
    const std::string shown = key.is_secret ? "***" : text;
    const auto value_of = [&](const result<configuration>& c) {
      EXPECT_TRUE(c) << key.name << ": " << c.error().message;
      return c ? text_of(c->options, key) : "";
    };
    ASSERT_NE(text_of(server_options{}, key), shown) << key.name;
    auto s = sources(others + std::string(key.name) + " = " + toml + "\n");
    EXPECT_EQ(value_of(load_configuration(s)), shown) << key.name;
    write(others);
    variables_ = {{key.variable(), text}};
    EXPECT_EQ(value_of(load_configuration(s)), shown) << key.variable();
    variables_.clear();
    if (key.flag.empty()) continue;
    s.flags = {{std::string(key.name), text}};
    EXPECT_EQ(value_of(load_configuration(s)), shown) << key.flag;
  }
}

// Every key with a range rejects values outside it.
TEST_F(Config, EnforcesTheRangeOfEveryKey) {
  for (const config_key& key : config_keys()) {
    if (key.range().empty()) continue;
    const bool is_time = key.type == config_key::kind::duration;
    const std::string above = std::to_string(key.most + 1) + (is_time ? "ms" : "");
    const std::string value = key.type == config_key::kind::count ? above : "'" + above + "'";
    EXPECT_NE(wrong(std::string(key.name) + " = " + value).find("must be from " + key.range()),
              std::string::npos)
        << key.name;
    if (key.least > 0) {
      const std::string zero = key.type == config_key::kind::count ? "0" : "'0'";
      EXPECT_NE(wrong(std::string(key.name) + " = " + zero).find("must be from"),
                std::string::npos);
    }
  }
}

TEST_F(Config, ReportsThePlaceAndCauseOfEveryError) {
  EXPECT_EQ(wrong("[http]\n  idle_tme = '5s'\n"),
            "sluice.toml:2:3: [http] idle_tme: unknown key; did you mean idle_time?");
  EXPECT_EQ(
      wrong("[http]\nidle_time = true\n"),
      "sluice.toml:2:1: [http] idle_time: expected a duration such as \"30s\", or a number of "
      "seconds, found true or false");
  EXPECT_EQ(wrong("\n\n[http]\nmax_connections = 0\n"),
            "sluice.toml:4:1: [http] max_connections must be from 1 to 1000000");
  EXPECT_EQ(wrong("sync = 'maybe'\n"),
            "sluice.toml:1:1: sync: expected full|interval|off, found 'maybe'");
  EXPECT_EQ(wrong("http = 5\n"), "sluice.toml:1:1: http: expected a table, as in [http]");
  EXPECT_EQ(wrong("data = ['a']\n"), "sluice.toml:1:1: data: expected a string, found an array");
  EXPECT_NE(wrong("[htpp]\nthreads = 1\n").find("did you mean http?"), std::string::npos);
  EXPECT_NE(wrong("nonsense = 1\n").find("known keys: data, memory"), std::string::npos);
  EXPECT_NE(wrong("[http]\nhosts = [1]\n").find("an array of strings"), std::string::npos);
  EXPECT_NE(wrong("[tls]\ncert = 'a'\n").find("tls.key is missing"), std::string::npos);
}

TEST_F(Config, ReportsThePlaceOfInvalidToml) {
  EXPECT_TRUE(wrong("data = \n").starts_with("sluice.toml:1:8: ")) << wrong("data = \n");
  EXPECT_TRUE(wrong("data = 'a'\ndata = 'b'\n").starts_with("sluice.toml:2:"));
  EXPECT_TRUE(wrong("[http]\n[http]\n").starts_with("sluice.toml:2:"));
  EXPECT_TRUE(wrong(std::string(1000, '[')).starts_with("sluice.toml:1:"));
  wrong(std::string("data = '\xff'\n"));
  wrong(std::string("a\0b", 3));
  // Non-ASCII letters in the place of a space.
  EXPECT_TRUE(wrong("data = 1\u013e2\n").starts_with("sluice.toml:1:"));
  EXPECT_TRUE(wrong("d\u013eta = 'a'\n").starts_with("sluice.toml:1:"));
}

TEST_F(Config, ReportsAllErrorsAtOnceInTheirOrder) {
  auto s = sources("sync = 'x'\n[http]\nfoo = 1\nthreads = 'a'\n[queues.mail]\nwhen_full = 'y'\n");
  variables_["SLUICE_LOG_LEVEL"] = "loud";
  s.flags = {{"shutdown_grace", "soon"}};
  const auto c = load_configuration(s);
  ASSERT_FALSE(c);
  std::vector<std::string> lines;
  std::istringstream in(c.error().message);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 6U) << c.error().message;
  EXPECT_NE(lines[0].find(":1:1: sync"), std::string::npos);
  EXPECT_NE(lines[1].find(":3:1: [http] foo"), std::string::npos);
  EXPECT_NE(lines[2].find(":4:1: [http] threads"), std::string::npos);
  EXPECT_NE(lines[3].find(":6:1: [queues.mail] when_full"), std::string::npos) << lines[3];
  EXPECT_NE(lines[4].find("--shutdown-grace: "), std::string::npos);
  EXPECT_NE(lines[5].find("SLUICE_LOG_LEVEL: expected debug"), std::string::npos);
}

TEST_F(Config, HasPathsRelativeToItsFile) {
  const auto c = load("data = 'd'\n[tls]\ncert = 'c.pem'\nkey = '/k.pem'\n");
  EXPECT_EQ(c.options.data, folder_.file("d"));
  EXPECT_EQ(c.options.tls.certificate, folder_.file("c.pem"));
  EXPECT_EQ(c.options.tls.key, "/k.pem");
}

TEST_F(Config, SetsQueues) {
  const auto c = load(
      "[queues.mail]\ncapacity_jobs = 10\ncapacity_bytes = '64MiB'\nwhen_full = 'block'\n"
      "lease_for = '30s'\npaused = true\n[queues.'a/b']\nkeep_done = 60\n");
  ASSERT_EQ(c.options.queues.size(), 2U);
  EXPECT_EQ(c.options.queues[0].first, "a/b");
  EXPECT_EQ(c.options.queues[0].second.keep_done, 60s);
  const queue_patch& mail = c.options.queues[1].second;
  EXPECT_EQ(mail.capacity_jobs, 10U);
  EXPECT_EQ(mail.capacity_bytes, std::uint64_t{64} << 20);
  EXPECT_EQ(mail.when_full, overflow::block);
  EXPECT_EQ(mail.lease_for, 30s);
  EXPECT_EQ(mail.paused, true);
}

TEST_F(Config, RejectsInvalidQueues) {
  EXPECT_NE(wrong("[queues.mail]\ncapacity = 1\n").find("capacity_jobs"), std::string::npos);
  EXPECT_NE(wrong("[queues.'a b']\n").find(":1:"), std::string::npos);
  EXPECT_NE(wrong("queues = 1\n").find("[queues.mail]"), std::string::npos);
  EXPECT_NE(wrong("[queues]\nmail = 1\n").find("[queues.mail]"), std::string::npos);
  EXPECT_NE(wrong("[queues.mail]\npaused = 'yes'\n").find(":2:1: [queues.mail] paused: "),
            std::string::npos);
  const std::string two = wrong("[queues.mail]\npaused = 1\nlease_for = 'x'\n");
  EXPECT_NE(two.find(":2:1:"), std::string::npos) << two;
  EXPECT_NE(two.find(":3:1:"), std::string::npos) << two;
}

TEST_F(Config, SetsCronEntries) {
  const auto c = load(
      "[[cron]]\nname = 'nightly'\nschedule = '30 2 * * *'\nzone = 'Europe/Berlin'\n"
      "missed = 'all'\npaused = true\nqueue = 'reports'\nkind = 'report'\n"
      "args = {depth = 3, names = ['a']}\npriority = 5\n"
      "[[cron]]\nname = 'hourly'\nschedule = '@hourly'\nkind = 'tick'\n");
  ASSERT_EQ(c.options.crons.size(), 2U);
  const cron_spec& first = c.options.crons[0].spec;
  EXPECT_EQ(first.name, "nightly");
  EXPECT_EQ(first.schedule, "30 2 * * *");
  EXPECT_EQ(first.zone, "Europe/Berlin");
  EXPECT_EQ(first.missed, missed_runs::all);
  EXPECT_TRUE(first.paused);
  EXPECT_TRUE(c.options.crons[0].says_paused);
  EXPECT_FALSE(c.options.crons[1].says_paused);
  EXPECT_EQ(first.job.queue, "reports");
  EXPECT_EQ(first.job.kind, "report");
  EXPECT_EQ(first.job.priority, 5);
  EXPECT_EQ(first.job.args.data, R"({"depth":3,"names":["a"]})");
  EXPECT_EQ(c.options.crons[1].spec.zone, "UTC");
}

TEST_F(Config, RejectsInvalidCronEntries) {
  const std::string sound = "[[cron]]\nname = 'n'\nschedule = '@daily'\nkind = 'k'\n";
  EXPECT_NE(wrong(sound + sound).find(":6:1: [cron n] name: another entry"), std::string::npos);
  EXPECT_NE(wrong(sound + "missed = 'some'\n").find(":5:1: [cron n] missed: expected skip"),
            std::string::npos);
  EXPECT_NE(wrong(sound + "knd = 'x'\n").find(":5:1: [cron n] "), std::string::npos);
  EXPECT_NE(wrong(sound + "zone = 'Mars/North'\n").find("Mars/North"), std::string::npos);
  EXPECT_NE(wrong("[[cron]]\nname = 'n'\nkind = 'k'\nschedule = '61 * * * *'\n")
                .find(":4:1: [cron n] schedule: "),
            std::string::npos);
  EXPECT_NE(wrong("[[cron]]\nname = 'n'\nschedule = '@daily'\n").find("kind"), std::string::npos);
  EXPECT_NE(wrong("[cron]\nname = 'n'\n").find("[[cron]]"), std::string::npos);
  EXPECT_NE(wrong("cron = [1]\n").find("[[cron]]"), std::string::npos);
}

TEST_F(Config, ReadsASecretFromAPrivateFileAndShowsItNowhere) {
  const std::string file = write("hunter2-hunter2-hunter2\n", "secret");
  EXPECT_NE(wrong("delivery.secret_file = 'secret'\n").find("chmod 600"), std::string::npos);
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  const auto c =
      load("delivery.secret_file = 'secret'\ndelivery.allow = ['https://a/', 'https://b/']\n");
  EXPECT_EQ(c.options.delivery.secret, "hunter2-hunter2-hunter2");
  EXPECT_EQ(c.options.delivery.allow.size(), 2U);
  EXPECT_EQ(describe(c).find("hunter2"), std::string::npos);
  EXPECT_NE(describe(c).find("***"), std::string::npos);
  EXPECT_NE(
      wrong("[delivery]\nsecret = '0123456789abcdef'\nsecret_file = 'secret'\n").find("not both"),
      std::string::npos);
  EXPECT_NE(wrong("delivery.secret_file = 'none'\n").find("No such file"), std::string::npos);
}

TEST_F(Config, LeavesTheOtherProtocolsOffWithoutAnAddress) {
  EXPECT_FALSE(load("").options.beanstalk.is_on());
  EXPECT_FALSE(load("").options.faktory.is_on());
  const auto c = load("[beanstalk]\nlisten = ':0'\n[faktory]\nlisten = 'localhost'\n");
  EXPECT_EQ(c.options.beanstalk.listen, (listen_address{"127.0.0.1", 0}));
  EXPECT_EQ(c.options.faktory.listen, (listen_address{"localhost", 7419}));
  EXPECT_EQ(load("beanstalk.listen = '::1'\n").options.beanstalk.listen,
            (listen_address{"::1", 11300}));
  EXPECT_TRUE(load("beanstalk.socket = '/run/b'\n").options.beanstalk.is_on());
  EXPECT_FALSE(load("beanstalk.listen = ''\n").options.beanstalk.is_on());
  EXPECT_NE(
      wrong("[faktory]\nlisten = 'a b'\n").find("[faktory] listen: invalid listen address 'a b'"),
      std::string::npos);
}

TEST_F(Config, ReadsThePasswordOfFaktoryFromAPrivateFileAndShowsItNowhere) {
  const std::string file = write("open sesame\n", "password");
  EXPECT_NE(wrong("faktory.password_file = 'password'\n").find("chmod 600"), std::string::npos);
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  const auto c = load("faktory.password_file = 'password'\n");
  EXPECT_EQ(c.options.faktory.password, "open sesame");
  EXPECT_EQ(describe(c).find("sesame"), std::string::npos);
  variables_ = {{"SLUICE_FAKTORY_PASSWORD", "another"}};
  EXPECT_NE(wrong("faktory.password_file = 'password'\n").find("not both"), std::string::npos);
  variables_.clear();
  write("", "password");
  EXPECT_NE(wrong("faktory.password_file = 'password'\n").find("is empty"), std::string::npos);
  EXPECT_NE(wrong("faktory.password_file = 'none'\n").find("No such file"), std::string::npos);
}

TEST_F(Config, ReportsThePlaceOfAnInvalidDeliveryRuleOrSecret) {
  const std::string rules = wrong(
      "[delivery]\nallow = [\n  'https://a.example.com/',\n  'ftp://b.example.com/',\n"
      "  'https://*.*.example.com']\n");
  EXPECT_TRUE(rules.starts_with("sluice.toml:4:3: [delivery] allow[1]: ")) << rules;
  EXPECT_NE(rules.find("\nsluice.toml:5:3: [delivery] allow[2]: "), std::string::npos) << rules;
  const std::string short_one = wrong("[delivery]\nsecret = 'hunter2'\n");
  EXPECT_TRUE(short_one.starts_with("sluice.toml:2:1: [delivery] secret: ")) << short_one;
  EXPECT_EQ(short_one.find("hunter2"), std::string::npos) << short_one;
  ASSERT_EQ(::chmod(write("hunter2\n", "secret").c_str(), 0600), 0);
  const std::string in_file = wrong("delivery.secret_file = 'secret'\n");
  EXPECT_TRUE(in_file.starts_with("sluice.toml:1:10: [delivery] secret_file: ")) << in_file;
  EXPECT_EQ(in_file.find("hunter2"), std::string::npos) << in_file;
  variables_ = {{"SLUICE_DELIVERY_SECRET", "hunter2"}, {"SLUICE_DELIVERY_ALLOW", "x"}};
  const std::string set = wrong("");
  EXPECT_NE(set.find("SLUICE_DELIVERY_ALLOW[0]: "), std::string::npos) << set;
  EXPECT_NE(set.find("SLUICE_DELIVERY_SECRET: "), std::string::npos) << set;
  EXPECT_EQ(set.find("hunter2"), std::string::npos) << set;
}

TEST_F(Config, TakesAListFromTheFileItemByItem) {
  const auto c = load("delivery.allow = ['https://a/b,c', 'https://d/']\n");
  EXPECT_EQ(c.options.delivery.allow, (std::vector<std::string>{"https://a/b,c", "https://d/"}));
}

TEST_F(Config, DescribesTheEffectiveSettingsAndTheirSources) {
  variables_["SLUICE_SYNC"] = "off";
  const std::string text = describe(load("listen = ':99'\n[queues.mail]\n"));
  const auto line_of = [&](const std::string& key) {
    const auto at = text.find("  " + key + " ");
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_NE(line_of("listen").find("127.0.0.1:99"), std::string::npos) << text;
  EXPECT_NE(line_of("listen").find("sluice.toml:1"), std::string::npos);
  EXPECT_NE(line_of("sync").find("SLUICE_SYNC"), std::string::npos);
  EXPECT_NE(line_of("http.max_body").find("16MB"), std::string::npos);
  EXPECT_NE(line_of("http.max_body").find("default"), std::string::npos);
  EXPECT_NE(text.find("queue mail"), std::string::npos);
}

TEST_F(Config, IsRobustAgainstAnyCut) {
  const std::string text =
      "listen = ':1'\n[http]\nhosts = [\"a\", 'b']\n[queues.mail]\nlease_for = '1s'\n"
      "[[cron]]\nname = 'n'\nschedule = '@daily'\nkind = 'k'\nargs = {a = [1, 2.5]}\n";
  for (std::size_t i = 0; i <= text.size(); ++i) {
    configuration c;
    [[maybe_unused]] const auto read = apply_config_text(c, text.substr(0, i), "cut");
  }
  configuration c;
  EXPECT_TRUE(apply_config_text(c, text, "whole"));
}

// docs/reference/configuration.md has a row for every key, with its flag, variable and default,
// and no other.
TEST_F(Config, IsDocumentedKeyByKey) {
  std::ifstream in(SLUICE_SOURCE_DIR "/docs/reference/configuration.md");
  ASSERT_TRUE(in) << "docs/reference/configuration.md";
  std::map<std::string, std::string> rows;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string name = line.substr(3, line.find('`', 3) - 3);
    EXPECT_TRUE(rows.emplace(name, line).second) << name << " is there twice";
  }
  for (const config_key& key : config_keys()) {
    const auto row = rows.find(std::string(key.name));
    ASSERT_NE(row, rows.end()) << key.name << " is not documented";
    const std::string flag = key.flag.empty() ? "none" : "`" + std::string(key.flag) + "`";
    const std::string default_text = text_of(server_options{}, key);
    for (const std::string& part : {"| " + flag + " |", "`" + key.variable() + "`",
                                    default_text.empty() ? "" : "`" + default_text + "`",
                                    key.range().empty() ? "" : key.range()}) {
      EXPECT_NE(row->second.find(part), std::string::npos) << key.name << " lacks " << part;
    }
    rows.erase(row);
  }
  for (const auto& [name, line] : rows) {
    EXPECT_EQ(name, "delivery.secret_file") << "is documented but does not exist";
  }
}

}  // namespace
}  // namespace sluice::jobs::config_test
