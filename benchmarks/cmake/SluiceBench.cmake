# The common parts of all benchmarks: the runner, the reports, threads and child processes.
add_library(sluice_bench_harness STATIC EXCLUDE_FROM_ALL
  harness.cpp line_trip.cpp report.cpp threads.cpp child_process.cpp daemon_process.cpp)
sluice_compile_options(sluice_bench_harness)
target_include_directories(sluice_bench_harness PUBLIC "${PROJECT_SOURCE_DIR}")
target_link_libraries(sluice_bench_harness PUBLIC Threads::Threads)

# Declares the benchmark bench_<name>.
#
#   sluice_bench(NAME queue SOURCES queue/queue_bench.cpp ... [PEERS tbb go ...]
#     [LIBRARIES target...] [PROGRAMS target...])
#
# Every peer adds the sources <name>/<peer>_case.cpp and <name>/<peer>_*_case.cpp. If a peer is not
# installed, the build of the benchmark fails and names the package, because a table without the
# peer would look complete; SLUICE_BENCH_ALLOW_MISSING_PEERS omits the peer instead. PROGRAMS are
# targets of this project that the benchmark starts.
function(sluice_bench)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;PEERS;LIBRARIES;PROGRAMS")
  if(NOT arg_NAME OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sluice_bench(NAME name SOURCES file... [PEERS peer...])")
  endif()
  set(target bench_${arg_NAME})
  add_executable(${target} EXCLUDE_FROM_ALL ${arg_SOURCES})
  # No unity build, so that the case of one peer does not change the optimization of another.
  sluice_compile_options(${target} SINGLE_SOURCES)
  target_link_libraries(${target} PRIVATE sluice_bench_harness sluice::sluice ${arg_LIBRARIES})
  if(arg_PROGRAMS)
    add_dependencies(${target} ${arg_PROGRAMS})
  endif()
  foreach(peer IN LISTS arg_PEERS)
    if(TARGET bench_peer_${peer})
      file(GLOB more CONFIGURE_DEPENDS ${arg_NAME}/${peer}_*_case.cpp)
      target_sources(${target} PRIVATE ${arg_NAME}/${peer}_case.cpp ${more})
      get_target_property(type bench_peer_${peer} TYPE)
      if(type STREQUAL "INTERFACE_LIBRARY")
        target_link_libraries(${target} PRIVATE bench_peer_${peer})
      else() # a program, which must exist when the benchmark runs
        add_dependencies(${target} bench_peer_${peer})
      endif()
    elseif(SLUICE_BENCH_ALLOW_MISSING_PEERS)
      message(STATUS "bench_${arg_NAME} will not have ${peer}: ${missing_${peer}}")
    else()
      add_dependencies(${target} missing_peer_${peer})
    endif()
  endforeach()
  if(SLUICE_BENCH_SMOKE_TESTS AND SLUICE_BUILD_TESTS)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL OFF)
    add_test(NAME ${target}_quick COMMAND ${target} --quick)
    # Not beside other tests: the sixteen threads would disturb their timing.
    set_tests_properties(${target}_quick PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()
