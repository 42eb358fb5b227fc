package guard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// Access says what a path is wanted for. Values are combined with |.
type Access int

// The accesses.
const (
	Read Access = 1 << iota
	Write
	List
)

// Kind says why a path was refused or what the operating system said.
type Kind string

// The kinds. Each is the text that a model reads after the path.
const (
	Empty       Kind = `is empty; "." is the workspace`
	Absolute    Kind = "is absolute; name files relative to the workspace, such as notes/a.txt"
	Malformed   Kind = "holds control characters or is not UTF-8"
	Backslash   Kind = "holds a backslash; folders are divided by slashes"
	Outside     Kind = "leads outside the workspace"
	Withheld    Kind = "is withheld: its name marks credentials"
	Protected   Kind = "is protected: its name marks settings or credentials that may not be written"
	Special     Kind = "is neither a file nor a folder"
	TooManyHops Kind = "leads through too many links"
	TooLong     Kind = "is too long a name"
	TooLarge    Kind = "is too large"
	Missing     Kind = "no such file or folder"
	IsFolder    Kind = "is a folder"
	NoFolder    Kind = "is not a folder"
	Permission  Kind = "permission denied"
	Exists      Kind = "exists already"
	NoSpace     Kind = "no space left"
	Changed     Kind = "was replaced while it was opened"
	Failed      Kind = "cannot be read or written"
)

// Error is a refusal or a failure. Its text holds the path as it was given and the kind, and nothing of the machine: no host path, no wording of the operating system.
type Error struct {
	Path string
	Kind Kind
	// Limit is what was exceeded, in bytes, where Kind is TooLarge.
	Limit int64
	err   error
}

// Error gives `"a/b" is a folder`.
func (e *Error) Error() string {
	text := fmt.Sprintf("%q %s", e.Path, e.Kind)
	switch {
	case e.Kind == Missing || e.Kind == Permission || e.Kind == NoSpace:
		text = fmt.Sprintf("%q: %s", e.Path, e.Kind)
	case e.Kind == TooLarge:
		text += fmt.Sprintf("; at most %d bytes are allowed", e.Limit)
	}
	return text
}

// Unwrap returns the operating system's error, if there is one. Its text may hold host paths.
func (e *Error) Unwrap() error { return e.err }

// KindOf reduces an error of the operating system to its kind, so that the same failure reads the same on every system.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, fs.ErrNotExist):
		return Missing
	case errors.Is(err, fs.ErrExist):
		return Exists
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return Permission
	case errors.Is(err, syscall.ENOTDIR):
		return NoFolder
	case errors.Is(err, syscall.EISDIR):
		return IsFolder
	case errors.Is(err, syscall.ENAMETOOLONG):
		return TooLong
	case errors.Is(err, syscall.ELOOP):
		return TooManyHops
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return NoSpace
	}
	return Failed
}

func wrap(given string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Path: given, Kind: KindOf(err), err: err}
}

// Names that are withheld from reading, and everything below the folders. They follow the path policy of the built-in tools, which lists files of a home folder; here they count by name, wherever in the workspace they lie.
var (
	withheldSuffixes = []string{".env", "credentials.json", "service-account.json", "secrets.yaml", "secrets.yml"}
	withheldNames    = []string{"id_rsa", "id_ed25519", "id_ecdsa", ".netrc", ".pgpass"}
	withheldFolders  = []string{".ssh", ".gnupg", ".aws", ".kube", ".docker", ".azure", ".config/gh"}
	protectedNames   = []string{"authorized_keys", "id_rsa", "id_ed25519", "id_ecdsa", ".bashrc", ".zshrc", ".profile", ".bash_profile", ".zprofile", ".netrc", ".pgpass", ".npmrc", ".pypirc"}
)

// denied applies the lists to a path with slashes, relative to the workspace. Upper and lower case are the same, as on some file systems they name the same file.
func denied(rel string, access Access) (Kind, bool) {
	rel = fold(rel)
	name := path.Base(rel)
	inFolder := slices.ContainsFunc(withheldFolders, func(folder string) bool {
		return strings.Contains("/"+rel+"/", "/"+folder+"/")
	})
	if access&(Read|List) != 0 && inFolder {
		return Withheld, true
	}
	if access&Read != 0 && (slices.Contains(withheldNames, name) || slices.ContainsFunc(withheldSuffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })) {
		return Withheld, true
	}
	if access&Write != 0 && (inFolder || slices.Contains(protectedNames, name)) {
		return Protected, true
	}
	return "", false
}

// fold maps letters that a file system may take for the same to one of them.
func fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// Bounds of a path, in bytes. They are those of common file systems, checked here so that every system refuses the same paths.
const (
	maxName  = 255
	maxPath  = 4096
	maxLinks = 40
)

// Resolved is a path that may be used.
type Resolved struct {
	// Given is the path as the model wrote it, for messages.
	Given string
	// Rel is where it leads, with slashes, relative to the workspace, all links and .. resolved; "." is the workspace.
	Rel string
	// Info describes the file; nil where it does not exist.
	Info fs.FileInfo
}

// Exists reports whether there is something at the path.
func (r Resolved) Exists() bool { return r.Info != nil }

// Workspace is the folder that the tools of one item see. It is safe for concurrent use; whatever happens to links and folders meanwhile, nothing outside is reached, as every access goes through an [os.Root].
type Workspace struct {
	root *os.Root
}

// NewWorkspace opens a folder as a workspace. [Workspace.Close] releases it.
func NewWorkspace(root string) (*Workspace, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("opening the workspace: %w", err)
	}
	return &Workspace{root: r}, nil
}

// Close releases the folder. The workspace must not be used afterwards.
func (w *Workspace) Close() error { return w.root.Close() }

// Files are all files of the workspace, for those who look at what tools did: files withheld from tools are among them, and nothing outside is reached.
func (w *Workspace) Files() fs.FS { return w.root.FS() }

// Resolve decides whether a path that a model wrote may be used for access, and where it leads. The error is an [*Error].
//
// Paths are relative to the workspace, with slashes. An absolute path is refused even where it leads into the workspace, which lies elsewhere on every machine. There is no home folder: ~ is a name like any other. Names are compared byte by byte; NFC and NFD
// differ unless the file system takes them for the same. A link is followed wherever it leads within the workspace; one to an absolute path is outside. A path need not exist, its end may be several folders that are still to be made.
// What is neither a regular file nor a folder is refused before it is opened: a pipe would block. A path that ends in a slash names a folder.
func (w *Workspace) Resolve(given string, access Access) (Resolved, error) {
	refuse := func(kind Kind) (Resolved, error) { return Resolved{}, &Error{Path: given, Kind: kind} }
	switch {
	case given == "":
		return refuse(Empty)
	case !utf8.ValidString(given) || strings.ContainsFunc(given, unicode.IsControl):
		return refuse(Malformed)
	case strings.Contains(given, `\`):
		return refuse(Backslash) // it divides folders on some systems and is part of a name on others
	case path.IsAbs(given):
		return refuse(Absolute)
	case len(given) > maxPath:
		return refuse(TooLong)
	}
	if kind, ok := denied(path.Clean(given), access); ok {
		return refuse(kind)
	}
	rel, info, err := w.follow(given)
	if err != nil {
		return Resolved{}, wrap(given, err)
	}
	// The name that a link leads to counts as much as the name of the link.
	if kind, ok := denied(rel, access); ok {
		return refuse(kind)
	}
	folder := strings.HasSuffix(given, "/") || path.Base(given) == "." || path.Base(given) == ".."
	switch {
	case info != nil && !info.IsDir() && !info.Mode().IsRegular():
		return refuse(Special)
	case info != nil && folder && !info.IsDir():
		return refuse(NoFolder)
	case info == nil && folder && access&Write != 0:
		return refuse(IsFolder)
	}
	return Resolved{Given: given, Rel: rel, Info: info}, nil
}

// follow walks the path as the operating system would, link by link, and returns where it ends. info is nil where nothing is there.
func (w *Workspace) follow(given string) (rel string, info fs.FileInfo, err error) {
	var done []string
	todo := strings.Split(given, "/")
	links := 0
	missing := false
	info, err = w.root.Lstat(".")
	if err != nil {
		return "", nil, err
	}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		switch {
		case name == "" || name == ".":
			continue
		case name == "..":
			if len(done) == 0 {
				return "", nil, &Error{Path: given, Kind: Outside}
			}
			done = done[:len(done)-1]
			// Above something missing there may be something again.
			if info, err = w.root.Lstat(join(done)); err != nil {
				if KindOf(err) != Missing {
					return "", nil, err
				}
				info = nil
			}
			missing = info == nil
			continue
		case len(name) > maxName:
			return "", nil, &Error{Path: given, Kind: TooLong}
		case missing:
			done = append(done, name)
			continue
		case !info.IsDir():
			return "", nil, &Error{Path: given, Kind: NoFolder}
		}
		done = append(done, name)
		info, err = w.root.Lstat(join(done))
		switch {
		case err != nil && KindOf(err) == Missing:
			info, missing = nil, true
		case err != nil:
			return "", nil, err
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return "", nil, &Error{Path: given, Kind: TooManyHops}
			}
			target, err := w.root.Readlink(join(done))
			if err != nil {
				return "", nil, err
			}
			if path.IsAbs(target) || len(target) > maxPath {
				return "", nil, &Error{Path: given, Kind: Outside}
			}
			done = done[:len(done)-1]
			todo = append(strings.Split(target, "/"), todo...)
			if info, err = w.root.Lstat(join(done)); err != nil {
				return "", nil, err
			}
		}
	}
	return join(done), info, nil
}

func join(names []string) string {
	if len(names) == 0 {
		return "."
	}
	return strings.Join(names, "/")
}

// ReadFile returns the content of a resolved file of at most limit bytes.
func (w *Workspace) ReadFile(r Resolved, limit int64) ([]byte, error) {
	switch {
	case r.Info == nil:
		return nil, &Error{Path: r.Given, Kind: Missing}
	case r.Info.IsDir():
		return nil, &Error{Path: r.Given, Kind: IsFolder}
	case r.Info.Size() > limit:
		return nil, &Error{Path: r.Given, Kind: TooLarge, Limit: limit}
	}
	f, err := w.open(r)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing was written
	data := make([]byte, 0, r.Info.Size()+1)
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > limit:
			return nil, &Error{Path: r.Given, Kind: TooLarge, Limit: limit}
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, wrap(r.Given, err)
		case len(data) == cap(data):
			data = slices.Grow(data, len(data))
		}
	}
}

// open opens what was resolved and makes sure that it is still the same: between the two somebody may have put a link or a pipe in its place.
func (w *Workspace) open(r Resolved) (*os.File, error) {
	f, err := w.root.OpenFile(r.Rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, wrap(r.Given, err)
	}
	info, err := f.Stat()
	if err == nil && os.SameFile(info, r.Info) && info.Mode().Type() == r.Info.Mode().Type() {
		return f, nil
	}
	f.Close() // nothing was written
	if err != nil {
		return nil, wrap(r.Given, err)
	}
	return nil, &Error{Path: r.Given, Kind: Changed}
}

// ReadDir returns the entries of a resolved folder, sorted by the bytes of their names.
func (w *Workspace) ReadDir(r Resolved) ([]fs.DirEntry, error) {
	switch {
	case r.Info == nil:
		return nil, &Error{Path: r.Given, Kind: Missing}
	case !r.Info.IsDir():
		return nil, &Error{Path: r.Given, Kind: NoFolder}
	}
	f, err := w.open(r)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing was written
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, wrap(r.Given, err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// WriteFile makes data the content of a resolved path, all or nothing: it is written to another file that then takes its place. A file keeps its permissions; a new one gets 0644. With parents, missing folders are made.
func (w *Workspace) WriteFile(r Resolved, data []byte, parents bool) error {
	perm := fs.FileMode(0o644)
	switch {
	case r.Info == nil:
	case r.Info.IsDir():
		return &Error{Path: r.Given, Kind: IsFolder}
	case r.Info.Mode().Perm()&0o200 == 0:
		// Renaming over it would work, and for an administrator so would opening it.
		return &Error{Path: r.Given, Kind: Permission}
	default:
		perm = r.Info.Mode().Perm()
	}
	dir := path.Dir(r.Rel)
	if parents && r.Info == nil && dir != "." {
		if err := w.root.MkdirAll(dir, 0o755); err != nil {
			return wrap(r.Given, err)
		}
	}
	f, name, err := w.temporary(dir)
	if err != nil {
		return wrap(r.Given, err)
	}
	_, err = f.Write(data)
	if err == nil {
		// The permissions given at creation pass through the process's mask.
		err = f.Chmod(perm)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = w.root.Rename(name, r.Rel)
	}
	if err != nil {
		w.root.Remove(name) // what failed before counts
		return wrap(r.Given, err)
	}
	return nil
}

// temporary creates a file that nobody else uses beside the one that is to be written.
func (w *Workspace) temporary(dir string) (*os.File, string, error) {
	for n := 0; ; n++ {
		name := path.Join(dir, fmt.Sprintf(".~write-%d", n))
		f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil || !errors.Is(err, fs.ErrExist) || n == 1000 {
			return f, name, err
		}
	}
}
