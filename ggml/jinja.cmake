# llama.cpp's Jinja engine, unmodified: it runs chat templates. It lies in the tree around the ggml source; where ggml
# is an installed package, or a tree without llama.cpp around it, it still comes from the pinned archive.

set(PENELOPE_JINJA_DIR "" CACHE PATH "The folder common/ of a llama.cpp tree, instead of the one around ggml or the pinned one")
set(jinja_common ${PENELOPE_JINJA_DIR})
if(NOT jinja_common AND PENELOPE_GGML_SOURCE AND EXISTS ${PENELOPE_GGML_SOURCE}/../common/jinja/runtime.h)
  get_filename_component(jinja_common ${PENELOPE_GGML_SOURCE}/../common ABSOLUTE)
endif()
if(NOT jinja_common)
  penelope_fetch(llama.cpp jinja_tree)
  set(jinja_common ${jinja_tree}/common)
endif()
if(NOT EXISTS ${jinja_common}/jinja/runtime.h)
  message(FATAL_ERROR "${jinja_common} is not the folder common/ of a llama.cpp tree: it has no jinja/runtime.h")
endif()

add_library(penelope_jinja STATIC EXCLUDE_FROM_ALL ${jinja_common}/jinja/lexer.cpp ${jinja_common}/jinja/parser.cpp
  ${jinja_common}/jinja/runtime.cpp ${jinja_common}/jinja/string.cpp ${jinja_common}/jinja/value.cpp ${jinja_common}/unicode.cpp
  ${jinja_common}/json.cpp)
target_include_directories(penelope_jinja PRIVATE ${jinja_common})
# Few files of ours know the engine. Its folder has headers of everyday names, which no other file should see.
foreach(name jinja jinja_bounds jinja_calls jinja_nodes)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/text/${name}.cpp PROPERTIES COMPILE_OPTIONS "-isystem${jinja_common}")
endforeach()
target_link_libraries(penelope_jinja PRIVATE ggml::ggml nlohmann_json::nlohmann_json)
# A template is anybody's text: what the engine asserts of it, it checks again and reports.
target_compile_definitions(penelope_jinja PRIVATE NDEBUG)
target_compile_options(penelope_jinja PRIVATE -w)
