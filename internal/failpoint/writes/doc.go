// Package writes makes a failpoint of every write of a store and of a forge: before it, after it,
// and as one that fails though it has happened. In a normal build it returns what it is given; it
// acts only in builds with the tag failpoint. It never changes what is written.
package writes
