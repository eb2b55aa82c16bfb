# The job server: the modules of jobs/, what they need from outside, and the program itself.

set(missing)
find_package(SQLite3)
find_package(Boost 1.81)
find_package(fmt)
find_package(spdlog)
find_package(CLI11)
foreach(package IN ITEMS SQLite3 Boost fmt spdlog CLI11)
  if(NOT ${package}_FOUND)
    list(APPEND missing ${package})
  endif()
endforeach()
if(missing)
  message(FATAL_ERROR "The job server needs ${missing}: run scripts/setup build, or configure "
    "with -DSLUICE_BUILD_JOBS=OFF")
endif()

set(jobs_modules ${SLUICE_LAYERS})
list(FILTER jobs_modules INCLUDE REGEX "^jobs/")
foreach(module IN LISTS jobs_modules)
  add_subdirectory(${module})
endforeach()

# The engine with its store and its workers, for a program that is to have no server.
add_library(sluice_jobs INTERFACE)
add_library(sluice::jobs ALIAS sluice_jobs)
set_target_properties(sluice_jobs PROPERTIES EXPORT_NAME jobs)
if(TARGET sluice_jobs_embedded)
  target_link_libraries(sluice_jobs INTERFACE sluice::jobs_embedded)
endif()
install(TARGETS sluice_jobs EXPORT sluice_jobs_targets)
