#pragma once

// The list of waits for people and for programs: as a table, as JSON, and as a graph of who waits
// for whom, in the languages of Graphviz and Mermaid.
//
//     std::cerr << inspect::to_text(inspect::waits());
//     write("waits.dot", inspect::to_dot(inspect::waits()));      // dot -Tsvg waits.dot
//
// The graph has a box for each party, a rounded one for each object; an arrow from a party to the
// object that it waits for, with the time, and from an object to each party that could end the
// wait.

#include <chrono>
#include <string>
#include <vector>

#include "sluice/inspect/inspect.hpp"

namespace sluice::inspect {

std::string to_text(const std::vector<wait_info>& waits);
std::string to_json(const std::vector<wait_info>& waits);
std::string to_dot(const std::vector<wait_info>& waits);
std::string to_mermaid(const std::vector<wait_info>& waits);

std::string to_text(const std::vector<contention_info>& contention);

// "350 ns", "1.5 ms", "12.0 s"
std::string to_text(std::chrono::nanoseconds time);

}  // namespace sluice::inspect
