"""One command of the chat a file; `kernelskill.chat.registry` finds them."""
