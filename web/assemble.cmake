# cmake -DOUT=page.html [-DPROGRAM=penelope.js -DFILES=files.html] -P assemble.cmake: the page as one HTML file.
# Without PROGRAM it is the one `penelope serve` sends, and the server is its back end. With PROGRAM, what Emscripten made,
# the model runs in the browser; FILES holds the elements with the model's files.
cmake_minimum_required(VERSION 3.22)

if(PROGRAM)
  set(back_end ${PROGRAM} browser.js)
else()
  set(back_end server.js)
endif()

set(script "")
foreach(name common.js ${back_end} puzzle.js steps.js chat.js graph.js demo.js page.js)
  get_filename_component(path ${name} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_LIST_DIR})
  file(READ ${path} text)
  string(APPEND script "${text}")
endforeach()
file(READ ${CMAKE_CURRENT_LIST_DIR}/page.css style)
file(READ ${CMAKE_CURRENT_LIST_DIR}/page.html page)
set(files "")
if(FILES)
  file(READ ${FILES} files)
endif()
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@FILES@" "${files}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
file(WRITE ${OUT} "${page}")
