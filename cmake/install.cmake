# The installed library and its packages for CMake (find_package(penelope)) and pkg-config.

add_library(penelope SHARED $<TARGET_OBJECTS:penelope_objects>)
add_library(penelope::penelope ALIAS penelope)
set_target_properties(penelope PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  PUBLIC_HEADER ${PROJECT_SOURCE_DIR}/include/penelope.h)
target_include_directories(penelope INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(penelope PRIVATE $<BUILD_INTERFACE:ggml::ggml>)
foreach(library ${private_libraries} penelope_flags)
  target_link_libraries(penelope PRIVATE $<BUILD_INTERFACE:${library}>)
endforeach()

# Only penelope_* leaves the library: a program with a ggml of its own must not meet ours.
if(APPLE)
  target_link_options(penelope PRIVATE "LINKER:-exported_symbol,_penelope_*")
else()
  set(exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  target_link_options(penelope PRIVATE "LINKER:--version-script=${exports}" "LINKER:--no-undefined")
  set_target_properties(penelope PROPERTIES LINK_DEPENDS ${exports})
endif()

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/penelope)
configure_package_config_file(cmake/penelope-config.cmake.in penelope-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(penelope-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/penelope.pc.in penelope.pc @ONLY)

install(TARGETS penelope EXPORT penelope-targets)
install(EXPORT penelope-targets NAMESPACE penelope:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/penelope-config.cmake ${PROJECT_BINARY_DIR}/penelope-config-version.cmake
  DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/penelope.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# cpack -G DEB makes a package of all this; scripts/package does it for machines other than this one.
set(CPACK_PACKAGE_NAME penelope)
set(CPACK_PACKAGE_VENDOR "penelope.cpp")
set(CPACK_PACKAGE_CONTACT "the authors of penelope.cpp <penelope@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)
