#pragma once

// Draws the dependency graph of a batch as Mermaid or Graphviz text.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/model/batch.hpp"

namespace sluice::jobs::http {

enum class graph_format : std::uint8_t { mermaid, dot };
std::optional<graph_format> graph_format_from(std::string_view word) noexcept;
std::string_view type_of(graph_format format) noexcept;  // the media type

enum class graph_part : std::uint8_t { all, first };  // first: there are more jobs than these

// Dependencies that are not in `jobs` are drawn as external nodes: a batch, a job of another batch,
// or a job that has ended and is no longer stored.
void draw_graph(std::string& out, graph_format format, const batch_info& batch,
                const std::vector<job>& jobs, graph_part part);

}  // namespace sluice::jobs::http
