package guard

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of a tree that is copied or hashed.
const (
	MaxTreeEntries = 20_000
	MaxTreeBytes   = 256 << 20
)

// treeEntry is one thing below the root of a tree.
type treeEntry struct {
	rel    string // with slashes
	mode   fs.FileMode
	size   int64
	target string // of a link
}

// CopyTree copies the folder src to dst, which must be absent or an empty folder: folders, regular files and links that stay inside. Files get the mode 0644, or 0755 where their owner may execute them, folders 0755. Owners and times are not copied.
//
// A link out of the folder, a pipe, a socket or a device is an error, as is a tree of more than [MaxTreeEntries] entries or [MaxTreeBytes] bytes; everything is checked before the first file is written. Errors name paths relative to src.
func CopyTree(src, dst string) error {
	from, entries, err := scanTree(src)
	if err != nil {
		return fmt.Errorf("copying a workspace: %w", err)
	}
	defer from.Close() // nothing was written
	if inside, err := contains(src, dst); err != nil || inside {
		return errors.Join(err, fmt.Errorf("copying a workspace: the copy would lie inside the folder that is copied"))
	}
	if err := os.MkdirAll(dst, 0o755); err != nil {
		return fmt.Errorf("copying a workspace: %w", err)
	}
	to, err := os.OpenRoot(dst)
	if err != nil {
		return fmt.Errorf("copying a workspace: %w", err)
	}
	defer to.Close() // files are closed one by one
	if there, err := fs.ReadDir(to.FS(), "."); err != nil || len(there) > 0 {
		return errors.Join(err, fmt.Errorf("copying a workspace: the folder for the copy is not empty"))
	}
	for _, e := range entries {
		switch {
		case e.mode.IsDir():
			if err = to.Mkdir(e.rel, 0o755); err == nil {
				err = to.Chmod(e.rel, 0o755)
			}
		case e.mode&fs.ModeSymlink != 0:
			err = to.Symlink(e.target, e.rel)
		default:
			err = copyFile(from, to, e)
		}
		if err != nil {
			return fmt.Errorf("copying a workspace: %s: %w", e.rel, err)
		}
	}
	return nil
}

func copyFile(from, to *os.Root, e treeEntry) error {
	in, err := from.Open(e.rel)
	if err != nil {
		return err
	}
	defer in.Close() // nothing was written
	perm := normalMode(e.mode)
	out, err := to.OpenFile(e.rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, e.size+1))
	if err == nil && n != e.size {
		err = fmt.Errorf("changed while it was copied")
	}
	if err == nil {
		err = out.Chmod(perm)
	}
	return errors.Join(err, out.Close())
}

func normalMode(mode fs.FileMode) fs.FileMode {
	if mode&0o100 != 0 {
		return 0o755
	}
	return 0o644
}

// contains reports whether inner is outer or lies below it.
func contains(outer, inner string) (bool, error) {
	var err error
	if outer, err = filepath.Abs(outer); err != nil {
		return false, err
	}
	if inner, err = filepath.Abs(inner); err != nil {
		return false, err
	}
	rel, err := filepath.Rel(outer, inner)
	if err != nil {
		// On another volume.
		return false, nil
	}
	return rel == "." || filepath.IsLocal(rel), nil
}

// scanTree lists what lies below a folder, parents before children and sorted by name. The caller closes the root.
func scanTree(dir string) (*os.Root, []treeEntry, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	var entries []treeEntry
	var total int64
	err = fs.WalkDir(root.FS(), ".", func(rel string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("%s: %s", rel, KindOf(err))
		case rel == ".":
			return nil
		case len(entries) == MaxTreeEntries:
			return fmt.Errorf("more than %d entries", MaxTreeEntries)
		}
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("%s: %s", rel, KindOf(err))
		}
		e := treeEntry{rel: rel, mode: info.Mode()}
		switch {
		case e.mode.IsDir():
		case e.mode.IsRegular():
			e.size = info.Size()
			if total += e.size; total > MaxTreeBytes {
				return fmt.Errorf("more than %d bytes", int64(MaxTreeBytes))
			}
		case e.mode&fs.ModeSymlink != 0:
			if e.target, err = root.Readlink(rel); err != nil {
				return fmt.Errorf("%s: %s", rel, KindOf(err))
			}
			// A link to nothing stays one, as long as it would be inside.
			e.target = filepath.ToSlash(e.target)
			if _, err := root.Stat(rel); path.IsAbs(e.target) || err != nil && KindOf(err) != Missing || !filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(rel), e.target))) {
				return fmt.Errorf("%s: the link leads outside the folder or in a circle; copy what it leads to, or remove it", rel)
			}
		default:
			return fmt.Errorf("%s: neither a file, a folder nor a link", rel)
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		root.Close() // nothing was written
		return nil, nil, err
	}
	return root, entries, nil
}

// HashTree returns 16 hex digits of SHA-256 over the files and links below a folder: path, kind, whether its owner may execute it, and content or target, sorted by path. Folders count by what they hold, as an empty one does not survive version control; owners, times and
// other permissions do not count. What [CopyTree] refuses is refused here too, and a copy has the hash of its original.
func HashTree(dir string) (string, error) {
	root, entries, err := scanTree(dir)
	if err != nil {
		return "", fmt.Errorf("hashing a folder: %w", err)
	}
	defer root.Close() // nothing was written
	slices.SortFunc(entries, func(a, b treeEntry) int { return strings.Compare(a.rel, b.rel) })
	sum := sha256.New()
	for _, e := range entries {
		switch {
		case e.mode.IsDir():
		case e.mode&fs.ModeSymlink != 0:
			hashField(sum, "link", e.rel, e.target)
		default:
			content, err := hashFile(root, e.rel)
			if err != nil {
				return "", fmt.Errorf("hashing a folder: %s: %s", e.rel, KindOf(err))
			}
			hashField(sum, "file "+normalMode(e.mode).String(), e.rel, content)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// hashField writes texts so that no two lists of texts give the same bytes.
func hashField(h hash.Hash, fields ...string) {
	for _, f := range fields {
		h.Write(binary.AppendUvarint(nil, uint64(len(f))))
		io.WriteString(h, f)
	}
}

func hashFile(root *os.Root, rel string) (string, error) {
	f, err := root.Open(rel)
	if err != nil {
		return "", err
	}
	defer f.Close() // nothing was written
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return string(sum.Sum(nil)), nil
}
