#pragma once

// A scripted HTTP server at /in that receives deliveries.
//
//     receiver to([](const received& r) { return answer(200, R"({"ok":true})"); });
//     deliver_to(to.url());
//     to.await(1); EXPECT_EQ(to.requests()[0].header("sluice-kind"), "mail");

#include <string>
#include <string_view>

#include "jobs/http/testing/scripted_server.hpp"

namespace sluice::jobs::testing {

class receiver : public scripted_server {
 public:
  using scripted_server::scripted_server;

  std::string url(std::string_view target = "/in", std::string_view host = "127.0.0.1") const {
    return scripted_server::url(target, host);
  }
};

}  // namespace sluice::jobs::testing
