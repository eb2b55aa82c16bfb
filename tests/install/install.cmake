# Makes an installation below PREFIX: of the build in BINARY_DIR or, without it, of a shared library
# that is built here on a machine without SQLite. Then moves it there from where it was installed.
#   cmake -D PREFIX=... -D LIBDIR=... -D SLUICE_SOURCE_DIR=... -D WORK_DIR=... -D COMPILER=...
#         -D BINARY_DIR=... | -D BUILD_TYPE=... -D FLAGS=... -D FLAGS_OF_TYPE=... -D UNITY=...
#         -P this
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK_DIR}")
if(NOT BINARY_DIR)
  set(BINARY_DIR "${WORK_DIR}/build")
  cmake_path(RELATIVE_PATH LIBDIR BASE_DIRECTORY "${PREFIX}" OUTPUT_VARIABLE libdir)
  run("${CMAKE_COMMAND}" -G Ninja -S "${SLUICE_SOURCE_DIR}" -B "${BINARY_DIR}"
    -D BUILD_SHARED_LIBS=ON -D CMAKE_INSTALL_LIBDIR=${libdir}
    -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_BUILD_TYPE=${BUILD_TYPE} -D SLUICE_UNITY=${UNITY}
    "-D${FLAGS}=${FLAGS_OF_TYPE}" -D CMAKE_DISABLE_FIND_PACKAGE_SQLite3=ON
    -D SLUICE_BUILD_JOBS=OFF -D SLUICE_BUILD_SIM=OFF -D SLUICE_BUILD_TESTS=OFF
    -D SLUICE_BUILD_EXAMPLES=OFF -D SLUICE_BUILD_BENCHMARKS=OFF)
  run("${CMAKE_COMMAND}" --build "${BINARY_DIR}")
endif()
run("${CMAKE_COMMAND}" --install "${BINARY_DIR}" --prefix "${WORK_DIR}/elsewhere")
file(RENAME "${WORK_DIR}/elsewhere" "${PREFIX}")
