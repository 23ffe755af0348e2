// Package failpoint names the places at which tests kill a process, or have a write fail that has
// happened. In a normal build it does nothing and costs nothing; it acts only in builds with the
// tag failpoint.
package failpoint
