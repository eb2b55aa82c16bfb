# Finds the libraries and languages that the benchmarks compare with. A found peer becomes the
# target bench_peer_<peer>. A missing one becomes the target missing_peer_<peer>, whose build fails
# with the reason; only benchmarks depend on it.
function(sluice_missing_peer peer package)
  set(text "not found; on Debian: apt-get install ${package}")
  set(missing_${peer} "${text}" PARENT_SCOPE)
  add_custom_target(missing_peer_${peer}
    COMMAND ${CMAKE_COMMAND} -E echo "benchmark peer ${peer}: ${text}"
    COMMAND ${CMAKE_COMMAND} -E echo
      "or configure with -DSLUICE_BENCH_ALLOW_MISSING_PEERS=ON to leave it out"
    COMMAND ${CMAKE_COMMAND} -E false
    VERBATIM)
endfunction()

# No warnings for the headers of a peer.
function(sluice_header_peer peer)
  add_library(bench_peer_${peer} INTERFACE)
  target_include_directories(bench_peer_${peer} SYSTEM INTERFACE ${ARGN})
endfunction()

find_package(TBB QUIET CONFIG)
if(TBB_FOUND)
  add_library(bench_peer_tbb INTERFACE)
  target_link_libraries(bench_peer_tbb INTERFACE TBB::tbb)
else()
  sluice_missing_peer(tbb libtbb-dev)
endif()

find_path(SLUICE_CONCURRENTQUEUE_DIR concurrentqueue/blockingconcurrentqueue.h)
find_path(SLUICE_READERWRITERQUEUE_DIR readerwriterqueue/readerwritercircularbuffer.h)
mark_as_advanced(SLUICE_CONCURRENTQUEUE_DIR SLUICE_READERWRITERQUEUE_DIR)
if(SLUICE_CONCURRENTQUEUE_DIR AND SLUICE_READERWRITERQUEUE_DIR)
  sluice_header_peer(moodycamel
    "${SLUICE_CONCURRENTQUEUE_DIR}" "${SLUICE_READERWRITERQUEUE_DIR}")
else()
  sluice_missing_peer(moodycamel "libconcurrentqueue-dev libreaderwriterqueue-dev")
endif()

# Boost_FOUND may be left from a search for the headers alone, so the target is checked.
find_package(Boost 1.81 QUIET CONFIG COMPONENTS thread)
if(TARGET Boost::thread)
  add_library(bench_peer_boost INTERFACE)
  target_link_libraries(bench_peer_boost INTERFACE Boost::thread)
  # Version 4 is the current interface of Boost.Thread; the default is that of 2011.
  target_compile_definitions(bench_peer_boost INTERFACE BOOST_THREAD_VERSION=4)
else()
  sluice_missing_peer(boost libboost-thread1.81-dev)
endif()

find_path(SLUICE_CAF_DIR caf/actor_system.hpp)
find_library(SLUICE_CAF_CORE caf_core)
mark_as_advanced(SLUICE_CAF_DIR SLUICE_CAF_CORE)
if(SLUICE_CAF_DIR AND SLUICE_CAF_CORE)
  sluice_header_peer(caf "${SLUICE_CAF_DIR}")
  target_link_libraries(bench_peer_caf INTERFACE "${SLUICE_CAF_CORE}")
else()
  sluice_missing_peer(caf libcaf-dev)
endif()

# Servers, which a benchmark starts from the PATH.
find_program(SLUICE_BEANSTALKD beanstalkd)
mark_as_advanced(SLUICE_BEANSTALKD)
if(SLUICE_BEANSTALKD)
  add_library(bench_peer_beanstalkd INTERFACE)
else()
  sluice_missing_peer(beanstalkd beanstalkd)
endif()

find_program(SLUICE_REDIS_SERVER redis-server)
find_path(SLUICE_HIREDIS_DIR hiredis/hiredis.h)
find_library(SLUICE_HIREDIS hiredis)
mark_as_advanced(SLUICE_REDIS_SERVER SLUICE_HIREDIS_DIR SLUICE_HIREDIS)
if(SLUICE_REDIS_SERVER AND SLUICE_HIREDIS_DIR AND SLUICE_HIREDIS)
  sluice_header_peer(redis_streams "${SLUICE_HIREDIS_DIR}")
  target_link_libraries(bench_peer_redis_streams INTERFACE "${SLUICE_HIREDIS}")
else()
  sluice_missing_peer(redis_streams "redis-server libhiredis-dev")
endif()

# The peers below are programs. They are compiled into the folder peers beside the benchmark, where
# built_peer() finds them.
find_program(SLUICE_GO go)
mark_as_advanced(SLUICE_GO)
if(SLUICE_GO)
  set(go_peer "${CMAKE_CURRENT_BINARY_DIR}/peers/go_peer")
  file(GLOB go_sources CONFIGURE_DEPENDS peers/go/*.go)
  add_custom_command(OUTPUT "${go_peer}"
    # The cache is in the build folder, so that no home directory is needed.
    COMMAND ${CMAKE_COMMAND} -E env "GOCACHE=${CMAKE_CURRENT_BINARY_DIR}/peers/go_cache"
      GOPROXY=off GOFLAGS= "${SLUICE_GO}" build -o "${go_peer}" .
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/peers/go"
    DEPENDS ${go_sources} peers/go/go.mod
    COMMENT "Building the Go peer"
    VERBATIM)
  add_custom_target(bench_peer_go DEPENDS "${go_peer}")
else()
  sluice_missing_peer(go golang-go)
endif()

find_package(Java 17 QUIET COMPONENTS Development Runtime)
if(Java_FOUND)
  file(GLOB java_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/peers/java/*.java")
  set(java_peer "${CMAKE_CURRENT_BINARY_DIR}/peers/java_peer.jar")
  set(java_classes "${CMAKE_CURRENT_BINARY_DIR}/peers/java_classes")
  add_custom_command(OUTPUT "${java_peer}"
    COMMAND "${Java_JAVAC_EXECUTABLE}" -Xlint:all -Werror -d "${java_classes}" ${java_sources}
    COMMAND "${Java_JAR_EXECUTABLE}" --create --file "${java_peer}"
      -C "${java_classes}" .
    DEPENDS ${java_sources}
    COMMENT "Building the Java peer"
    VERBATIM)
  add_custom_target(bench_peer_java DEPENDS "${java_peer}")
else()
  sluice_missing_peer(java default-jdk-headless)
endif()
