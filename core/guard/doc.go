// Package guard keeps tools where they belong. The path guard, a [Workspace], confines them to the folder of one item and withholds what is named like credentials; [CopyTree] makes that folder and [HashTree] tells whether its original has changed.
package guard
