#pragma once

// Iterates over the members of a JSON object. A null value counts as an omitted member.
//
//     for (object_reader o(in); o.next();) {
//       if (o.is("wid")) wid = in.string();
//       else in.skip();
//     }

#include <string_view>

#include "jobs/json/json_reader.hpp"

namespace sluice::jobs::faktory {

class object_reader {
 public:
  explicit object_reader(json::json_reader& in) : in_(in) { in_.begin_object(); }

  bool next() {
    while (in_.next_key(key_)) {
      if (!in_.skip_null()) return true;
    }
    return false;
  }
  // `name` must be a literal: error messages refer to it.
  bool is(std::string_view name) {
    if (key_ != name) return false;
    in_.name_member(name);
    return true;
  }

 private:
  json::json_reader& in_;
  std::string_view key_;
};

}  // namespace sluice::jobs::faktory
