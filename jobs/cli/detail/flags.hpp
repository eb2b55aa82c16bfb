#pragma once

// Flags with structured values: durations, sizes, rates, words. An invalid value is rejected with
// the expected form.

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "jobs/json/text.hpp"
#include "jobs/model/plan.hpp"
#include "jobs/model/result.hpp"

namespace sluice::jobs::cli::detail {

[[noreturn]] inline void refuse(const std::string& flag, const std::string& why) {
  throw CLI::ValidationError(flag, why);
}

// Adds a flag whose value is parsed by `parse`, which returns a result<T>.
template <class T, class Parse>
CLI::Option* parsed_option(CLI::App& app, const std::string& flag, T& into, const char* help,
                           const char* type, Parse parse) {
  return app
      .add_option_function<std::string>(
          flag,
          [flag, &into, parse](const std::string& text) {
            auto value = parse(text);
            if (!value) refuse(flag, value.error().message);
            into = std::move(*value);
          },
          help)
      ->type_name(type);
}

// Adds such a flag that may be repeated or have several values separated by commas.
template <class T, class Parse>
CLI::Option* parsed_list(CLI::App& app, const std::string& flag, std::vector<T>& into,
                         const char* help, const char* type, Parse parse) {
  return app
      .add_option_function<std::vector<std::string>>(
          flag,
          [flag, &into, parse](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              auto value = parse(text);
              if (!value) refuse(flag, value.error().message);
              into.push_back(std::move(*value));
            }
          },
          help)
      ->type_name(type)
      ->delimiter(',')
      ->allow_extra_args(false);
}

template <class T>
CLI::Option* duration_option(CLI::App& app, const std::string& flag, T& into, const char* help) {
  return parsed_option(app, flag, into, help, "DURATION",
                       [](const std::string& text) { return parse_duration(text); });
}

// Wraps a parser that returns optional<T>: its errors list the allowed words.
template <class Parse>
auto one_of(const char* words, Parse parse) {
  return [parse, words](const std::string& text) {
    auto value = parse(text);
    using type = typename decltype(value)::value_type;
    if (value) return result<type>(*value);
    return result<type>(
        error{error_code::invalid, "expected " + std::string(words) + ", found '" + text + "'"});
  };
}

// Adds a flag whose value is one of a few words; `parse` returns an optional<T>.
template <class T, class Parse>
CLI::Option* word_option(CLI::App& app, const std::string& flag, T& into, const char* help,
                         const char* words, Parse parse) {
  return parsed_option(app, flag, into, help, words, one_of(words, parse));
}

template <class T, class Parse>
CLI::Option* word_list(CLI::App& app, const std::string& flag, std::vector<T>& into,
                       const char* help, const char* words, Parse parse) {
  return parsed_list(app, flag, into, help, words, one_of(words, parse));
}

// Adds a flag for a rate: 100/s, 30/m, 5/h, or a number per second.
template <class T>
CLI::Option* rate_option(CLI::App& app, const std::string& flag, T& into, const char* help) {
  return parsed_option(app, flag, into, help, "RATE",
                       [](const std::string& text) { return parse_rate(text); });
}

// Adds a flag for a number from `least` to `most`.
template <class T, class Number>
CLI::Option* number_option(CLI::App& app, const std::string& flag, T& into, const char* help,
                           Number least, Number most) {
  return app.add_option(flag, into, help)->check(CLI::Range(least, most));
}

}  // namespace sluice::jobs::cli::detail
