// Package scripttest tests the shell scripts of ci with a stand-in for the command that they drive.
package scripttest
