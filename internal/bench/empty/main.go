// Command empty does nothing. It is what a Go program costs that has no code of its own.
package main

func main() {}
