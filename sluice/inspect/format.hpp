#pragma once

// Formats the list of waits: as a table, as JSON, and as a graph in the languages of Graphviz and
// Mermaid.
//
//     std::cerr << inspect::to_text(inspect::waits());
//     write("waits.dot", inspect::to_dot(inspect::waits()));      // dot -Tsvg waits.dot
//
// The graph has a box for each party and a rounded box for each object; an arrow from each party to
// the object that it waits for, with the time, and from the object to each party that could end the
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
