# Tests the symbols of the library.
#   cmake -D LINKAGE=static|shared -D ABI=0.1 -D LIBDIR=... -P this
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

if(LINKAGE STREQUAL "static")
  # A thread_local is accessed without a call, also in position independent code.
  run(nm --undefined-only "${LIBDIR}/libsluice.a")
  if(output MATCHES "__tls_get_addr")
    message(FATAL_ERROR "libsluice.a calls __tls_get_addr: see sluice_installed_code")
  endif()
  return()
endif()

run(readelf --dynamic --wide "${LIBDIR}/libsluice.so")
if(NOT output MATCHES "SONAME[^\n]*\\[libsluice.so.${ABI}\\]")
  message(FATAL_ERROR "the soname is not libsluice.so.${ABI}:\n${output}")
endif()
run(nm --dynamic --defined-only --format=just-symbols "${LIBDIR}/libsluice.so")
string(REPLACE "\n" ";" symbols "${output}")
list(LENGTH symbols count)
# The namespace is the first name of the symbol, not of a parameter.
list(FILTER symbols EXCLUDE REGEX "^_Z(T[VTISCHW]|T[hvc][n0-9_]*|GV)?Z?N[KRO]*6sluice")
list(FILTER symbols EXCLUDE REGEX "^(SLUICE_${ABI}(@.*)?)?$")
if(symbols OR count LESS 500)
  message(FATAL_ERROR "of ${count} exported symbols these are not of the namespace: ${symbols}")
endif()
