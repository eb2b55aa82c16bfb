#pragma once

// Recognizes HTTP and TLS input of a web browser on the port of another protocol.
//
// A web page can make a browser send a request to any port that its machine reaches, with a body of
// the page's choice. A line protocol that answers unknown lines with an error and continues would
// execute the commands in that body. Such a protocol closes the connection at the first line for
// which this is true.
//
// Guarantees: true for a request line, for a Host header, which every browser sends before the
// headers and the body that a page can choose, and for the first bytes of TLS. False for every
// command of the beanstalk and Faktory protocols. The beginning of a line that is too long or
// incomplete is enough to recognize a usual method, a Host header and TLS.
//
//     is_browser_line("POST /x HTTP/1.1")        // true
//     is_browser_line("host: localhost:11300")   // true
//     is_browser_line("use HTTP/1.1")            // false: a tube with that name

#include <string_view>

namespace sluice::jobs::protocol {

bool is_browser_line(std::string_view line) noexcept;

}  // namespace sluice::jobs::protocol
