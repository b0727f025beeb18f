# cmake -DIN=page.html -DOUT=page.cpp -DNAME=page_html -P embed.cmake: a text file as a string of the program.
file(READ "${IN}" text)
file(WRITE "${OUT}" "namespace penelope {\nextern const char * const ${NAME};\nconst char * const ${NAME} = R\"--page--(${text})--page--\";\n}\n")
