#pragma once

// A picture of a batch's jobs and what they wait for, in a language that tools draw.

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

// Jobs that are waited for and not in `jobs` are drawn too: a batch, or a job of another batch, or
// one that has ended and is not kept.
void draw_graph(std::string& out, graph_format format, const batch_info& batch,
                const std::vector<job>& jobs, graph_part part);

}  // namespace sluice::jobs::http
