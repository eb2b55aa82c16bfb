include(CMakePackageConfigHelpers)

# sluice_component(name...) adds components of find_package(sluice COMPONENTS ...).
function(sluice_component)
  list(TRANSFORM ARGN REPLACE "/" "_" OUTPUT_VARIABLE names)
  set_property(GLOBAL APPEND PROPERTY SLUICE_COMPONENTS ${names})
endfunction()

# sluice_component_absent(name reason): find_package of this installation reports that the component
# was not installed, and the reason.
function(sluice_component_absent name reason)
  set_property(GLOBAL APPEND_STRING PROPERTY SLUICE_ABSENT
    "set(_sluice_absent_${name} \"was not installed: ${reason}\")\n")
endfunction()

# Installs the files that find_package(sluice) and pkg-config read.
function(sluice_install)
  set(folder "${CMAKE_INSTALL_LIBDIR}/cmake/sluice")
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
  get_property(SLUICE_ABSENT GLOBAL PROPERTY SLUICE_ABSENT)
  get_property(components GLOBAL PROPERTY SLUICE_COMPONENTS)
  list(JOIN components ", " SLUICE_COMPONENTS)
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/sluiceConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/sluiceConfig.cmake" INSTALL_DESTINATION "${folder}")
  # While the major version is 0, a minor version may change the interface.
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/sluiceConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/sluiceConfig.cmake"
    "${PROJECT_BINARY_DIR}/sluiceConfigVersion.cmake" DESTINATION "${folder}")
  # The paths of sluice.pc begin where the file is, so that the installation can be moved.
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
    BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig"
    OUTPUT_VARIABLE SLUICE_PREFIX_FROM_PC)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/sluice.pc.in" "${PROJECT_BINARY_DIR}/sluice.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/sluice.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/sluice")
endfunction()
