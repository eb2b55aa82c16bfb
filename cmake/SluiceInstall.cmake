include(CMakePackageConfigHelpers)

# What `cmake --install` leaves behind, next to the modules themselves: the package that
# find_package(sluice) reads, and its component `jobs` when the job server was built.
function(sluice_install)
  set(folder "${CMAKE_INSTALL_LIBDIR}/cmake/sluice")
  install(TARGETS sluice_all EXPORT sluice_targets)
  install(EXPORT sluice_targets NAMESPACE sluice:: FILE sluiceTargets.cmake
    DESTINATION "${folder}")
  get_property(has_inner_modules GLOBAL PROPERTY SLUICE_HAS_INNER_MODULES)
  if(has_inner_modules)
    install(EXPORT sluice_inner_targets NAMESPACE sluice:: FILE sluiceInnerTargets.cmake
      DESTINATION "${folder}")
  endif()
  if(SLUICE_BUILD_JOBS)
    install(EXPORT sluice_jobs_targets NAMESPACE sluice:: FILE sluiceJobsTargets.cmake
      DESTINATION "${folder}")
  endif()
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/sluiceConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/sluiceConfig.cmake" INSTALL_DESTINATION "${folder}")
  # While the major version is 0, a minor version may change the interface.
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/sluiceConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/sluiceConfig.cmake"
    "${PROJECT_BINARY_DIR}/sluiceConfigVersion.cmake" DESTINATION "${folder}")
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/sluice")
endfunction()
