// `redis_streams`: a stream and a consumer group of Debian's Redis, through hiredis. Durable:
// appendfsync always. Relaxed: everysec.
//
// A worker reads entries up to its depth, and finishes each with XACK and XDEL, which are sent
// together and count as one command. Redis has no retry, deadline or priority of an entry: this is
// the cost of a durable log without the features of a job queue.
#include <hiredis/hiredis.h>
#include <hiredis/read.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "benchmarks/beanstalk/contender.hpp"
#include "benchmarks/wire/crowd.hpp"

namespace sluice::bench {
namespace {

std::string formatted(std::initializer_list<std::string> words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* made = nullptr;
  const int size =
      redisFormatCommandArgv(&made, static_cast<int>(words.size()), texts.data(), sizes.data());
  if (size < 0) fail("hiredis could not write a command");
  const std::string command(made, static_cast<std::size_t>(size));
  redisFreeCommand(made);
  return command;
}

// Returns a formatted command without its last word, which differs for each use.
std::string all_but_last(std::initializer_list<std::string> words) {
  std::string command = formatted(words);
  command.resize(command.rfind('$'));
  return command;
}

void append_word(std::string& out, std::string_view word) {
  out.append("$").append(std::to_string(word.size())).append("\r\n").append(word).append("\r\n");
}

class replies {
 public:
  replies() : reader_(redisReaderCreate()) {}
  ~replies() { redisReaderFree(reader_); }
  replies(const replies&) = delete;
  replies& operator=(const replies&) = delete;

  // Calls `consume` with each complete reply; the reader keeps the rest.
  template <class Consume>
  void feed(std::string_view in, const Consume& consume) {
    redisReaderFeed(reader_, in.data(), in.size());
    for (;;) {
      void* found = nullptr;
      if (redisReaderGetReply(reader_, &found) != REDIS_OK) fail(reader_->errstr);
      if (found == nullptr) return;
      const auto* reply = static_cast<redisReply*>(found);
      if (reply->type == REDIS_REPLY_ERROR) fail("Redis replied " + std::string(reply->str));
      consume(*reply);
      freeReplyObject(found);
    }
  }

 private:
  redisReader* reader_;
};

std::string_view text_of(const redisReply& reply) {
  return {reply.str, static_cast<std::size_t>(reply.len)};
}

class redis_producer final : public job_producer {
 public:
  void put(std::string& out, std::uint64_t first) override {
    static const std::string before = all_but_last({"XADD", "jobs", "*", "body", "x"}) + "$" +
                                      std::to_string(body_bytes) + "\r\n";
    out.append(before);
    append_body(out, first);
    out.append("\r\n");
  }

  std::size_t consume(std::string_view in, std::uint64_t& answered) override {
    replies_.feed(in, [&](const redisReply&) { ++answered; });
    return in.size();
  }

 private:
  replies replies_;
};

class redis_worker final : public job_worker {
 public:
  redis_worker(std::size_t depth, std::string name) : depth_(depth), name_(std::move(name)) {}

  void start(std::string& out, work_log&) override { read_more(out); }

  std::size_t consume(std::string_view in, std::string& out, work_log& log) override {
    replies_.feed(in, [&](const redisReply& reply) {
      if (reply.type == REDIS_REPLY_ARRAY) {
        is_reading_ = false;
        // [[stream, [[id, [field, body]], ...]]]
        const redisReply& entries = *reply.element[0]->element[1];
        for (std::size_t i = 0; i < entries.elements; ++i) finish(*entries.element[i], out, log);
      } else if (reply.type == REDIS_REPLY_INTEGER && reply.integer == 1) {
        half_answers_ += 1;  // the reply to XACK, then that to XDEL
        log.finished += half_answers_ % 2 == 0 ? 1 : 0;
      } else {
        fail("Redis did not find an entry that it had handed out");
      }
    });
    unfinished_ -= half_answers_ / 2;
    half_answers_ %= 2;
    if (!is_reading_ && unfinished_ < depth_) read_more(out);
    return in.size();
  }

 private:
  void finish(const redisReply& entry, std::string& out, work_log& log) {
    static const std::string ack = all_but_last({"XACK", "jobs", "workers", "x"});
    static const std::string del = all_but_last({"XDEL", "jobs", "x"});
    const std::string_view id = text_of(*entry.element[0]);
    log.started(text_of(*entry.element[1]->element[1]));
    append_word(out.append(ack), id);
    append_word(out.append(del), id);
    ++unfinished_;
  }

  void read_more(std::string& out) {
    out.append(
        formatted({"XREADGROUP", "GROUP", "workers", name_, "COUNT",
                   std::to_string(depth_ - unfinished_), "BLOCK", "0", "STREAMS", "jobs", ">"}));
    is_reading_ = true;
  }

  std::size_t depth_;
  std::string name_;
  replies replies_;
  std::size_t unfinished_ = 0;    // entries without both replies
  std::size_t half_answers_ = 0;  // replies for unfinished entries
  bool is_reading_ = false;
};

class redis_streams_dialect final : public dialect {
 public:
  // Works also on a server that has run a load before.
  opening once() const override {
    return {formatted({"DEL", "jobs"}) +
                formatted({"XGROUP", "CREATE", "jobs", "workers", "0", "MKSTREAM"}),
            2};
  }
  std::unique_ptr<job_producer> producer() const override {
    return std::make_unique<redis_producer>();
  }
  std::unique_ptr<job_worker> worker(std::size_t depth) const override {
    static int made = 0;
    return std::make_unique<redis_worker>(depth, "worker-" + std::to_string(++made));
  }
};

std::unique_ptr<queue_server> start_redis(const std::filesystem::path& folder, durability kept) {
  const std::uint16_t port = free_port();
  std::vector<std::string> command = {"redis-server"};
  // No snapshots and no rewriting of the log, which would happen in some runs only.
  for (const char* word : {"--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
                           "--auto-aof-rewrite-percentage", "0", "--appendfsync"}) {
    command.emplace_back(word);
  }
  command.emplace_back(kept == durability::durable ? "always" : "everysec");
  command.insert(command.end(), {"--port", std::to_string(port), "--dir", folder.string()});
  return std::make_unique<peer_server>(command, folder, port);
}

const registration added{[](suite& s) {
  add_contender(s, {.who = "redis_streams",
                    .protocol = std::make_shared<redis_streams_dialect>(),
                    .start = start_redis});
}};

}  // namespace
}  // namespace sluice::bench
