# Installs the library into a fresh prefix, builds examples/simple against that prefix alone, and runs it. Configures the
# library without the program as well.
# Inputs: BUILD_DIR, SOURCE_DIR, GENERATOR, C_COMPILER, GGML and GGML_DIR (PENELOPE_GGML and PENELOPE_GGML_DIR of the
# build), SMOLLM2 (the run is left out if there is no such file, unless the environment has
# PENELOPE_TEST_REQUIRE_FILES=1).

set(work ${BUILD_DIR}/tests/install)
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})

function(run)
  list(JOIN ARGN " " command)
  message(STATUS "${command}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  message("${output}${errors}")
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "'${command}' ended with ${code}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
file(GLOB headers RELATIVE ${prefix}/include ${prefix}/include/*)
if(NOT headers STREQUAL "penelope.h")
  message(FATAL_ERROR "penelope.h alone was to be installed, there is: ${headers}")
endif()

run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/examples/simple -B ${work}/simple -G ${GENERATOR} -DCMAKE_C_COMPILER=${C_COMPILER}
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${prefix} "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror")
run(${CMAKE_COMMAND} --build ${work}/simple)

if(EXISTS "${SMOLLM2}" OR "$ENV{PENELOPE_TEST_REQUIRE_FILES}" STREQUAL "1")
  run(${work}/simple/simple ${SMOLLM2} "The capital of France is")
  if(NOT output MATCHES "Paris")
    message(FATAL_ERROR "The answer does not name Paris: ${output}")
  endif()
else()
  message(STATUS "examples/simple was built but not run: ${SMOLLM2} is not there, ggml/fetch smollm2 brings it")
endif()

# PENELOPE_PROGRAM=OFF asks for nothing that only the program uses.
set(library ${work}/library)
run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${library} -G ${GENERATOR} -DPENELOPE_PROGRAM=OFF -DPENELOPE_GGML=${GGML}
  -DPENELOPE_GGML_DIR=${GGML_DIR} -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON)
file(GLOB_RECURSE rules ${library}/build.ninja ${library}/CMakeFiles/link.txt)
foreach(file ${rules})
  file(STRINGS ${file} uses REGEX "httplib|libedit|-ledit|-lssl|/libssl|CLI11")
  if(uses)
    message(FATAL_ERROR "${file}: the library alone uses a package of the program: ${uses}")
  endif()
endforeach()
if(NOT rules)
  message(FATAL_ERROR "${library}: no build rules found")
endif()
