package ramway

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// docs/api/go.txt says how the calls of every language are spelled here. These tests hold it against the package.

// apiRows are the lines of a file of docs/api that say something, cut at a separator, by section.
func apiRows(t *testing.T, file, separator string) (ids []string, values map[string]string, onlyHere map[string]string) {
	t.Helper()
	values, onlyHere = map[string]string{}, map[string]string{}
	into := values
	for _, line := range strings.Split(string(repositoryFile(t, file)), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "## Only here":
			into = onlyHere
			continue
		case line == "" || line[0] == '#':
			continue
		}
		name, value, is := strings.Cut(line, separator)
		if !is || value == "" || into[name] != "" {
			t.Fatalf("%s: %q", file, line)
		}
		if into[name] = value; len(onlyHere) == 0 {
			ids = append(ids, name)
		}
	}
	return ids, values, onlyHere
}

// exported is every exported name of the package: functions, types, values, Type.Method and Type.Field. callable has those
// that can be called and the fields of options.
func exported(t *testing.T) (all, callable map[string]bool) {
	t.Helper()
	all, callable = map[string]bool{}, map[string]bool{}
	files := token.NewFileSet()
	entries, err := os.ReadDir(".")
	must(err)
	add := func(name string, call bool) {
		all[name] = true
		if call {
			callable[name] = true
		}
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, entry.Name(), nil, parser.SkipObjectResolution)
		must(err)
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if !decl.Name.IsExported() {
					continue
				}
				for _, owner := range owners(decl) {
					add(owner+decl.Name.Name, true)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					addSpec(spec, add)
				}
			}
		}
	}
	return all, callable
}

// owners are the exported types that have a method, each with a dot; "" for a function.
func owners(decl *ast.FuncDecl) []string {
	if decl.Recv == nil {
		return []string{""}
	}
	of := decl.Recv.List[0].Type
	if star, is := of.(*ast.StarExpr); is {
		of = star.X
	}
	switch name := of.(*ast.Ident).Name; {
	case name == "endpoint":
		return []string{"Sender.", "Receiver."}
	case ast.IsExported(name):
		return []string{name + "."}
	}
	return nil
}

func addSpec(spec ast.Spec, add func(name string, call bool)) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() {
				add(name.Name, false)
			}
		}
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return
		}
		add(spec.Name.Name, false)
		if of, is := spec.Type.(*ast.StructType); is {
			for _, field := range of.Fields.List {
				for _, name := range field.Names {
					if name.IsExported() {
						add(spec.Name.Name+"."+name.Name, strings.HasSuffix(spec.Name.Name, "Options"))
					}
				}
			}
		}
	}
}

func TestTheListOfCallsIsThePackages(t *testing.T) {
	wanted, _, _ := apiRows(t, "docs/api/calls.txt", " | ")
	ids, spellings, onlyHere := apiRows(t, "docs/api/go.txt", " = ")
	if !slices.Equal(ids, wanted) {
		for i := range max(len(ids), len(wanted)) {
			if i >= len(ids) || i >= len(wanted) || ids[i] != wanted[i] {
				t.Fatalf("line %d of docs/api/go.txt is not that of calls.txt: %q, expected %q", i, ids[i:min(i+1, len(ids))], wanted[i:min(i+1, len(wanted))])
			}
		}
	}
	all, callable := exported(t)
	named := map[string]bool{}
	name := func(spelling string) {
		if named[spelling] = true; !all[spelling] {
			t.Errorf("docs/api/go.txt names %q, which the package does not have", spelling)
		}
	}
	for id, spelling := range spellings {
		if reason, none := strings.CutPrefix(spelling, "--"); none {
			if len(reason) < 10 {
				t.Errorf("%s: no reason", id)
			}
			continue
		}
		for _, one := range strings.Split(spelling, ", ") {
			name(one)
		}
	}
	for one := range onlyHere {
		name(one)
	}
	for call := range callable {
		owner, _, _ := strings.Cut(call, ".")
		if _, whole := onlyHere[owner]; !named[call] && !whole && owner != "WaitMode" {
			t.Errorf("docs/api/go.txt does not name %s", call)
		}
	}
}

// TestDefaultsAreThoseOfTheList: what calls.txt says of each default that can be seen.
func TestDefaultsAreThoseOfTheList(t *testing.T) {
	_, calls, _ := apiRows(t, "docs/api/calls.txt", " | ")
	says := func(id, text string, so bool) {
		t.Helper()
		if !strings.Contains(calls[id], text) || !so {
			t.Errorf("%s: %q: expected %q, which is %v here", id, calls[id], text, so)
		}
	}
	name := newFolder(t).at("ring")
	began := time.Now()
	_, err := OpenSender(name, Options{})
	says("ring.timeout", "default 0", KindOf(err) == NotFound && time.Since(began) < long)
	tx, err := CreateSender(name, Options{})
	expectKind(t, err, 0)
	info, err := os.Stat(name)
	must(err)
	says("ring.capacity", "default 1 MiB", tx.Capacity() == 1<<20)
	says("ring.align", "default 16", tx.Align() == 16)
	says("ring.mode", "default 0600", info.Mode() == fs.FileMode(0o600))
	says("ring.wait", "`hybrid` (default)", Options{}.Wait == Hybrid)
	expectKind(t, tx.Close(), 0)
	_, err = os.Stat(name)
	if err == nil {
		// The end of the stream is undelivered.
		rx, err := OpenReceiver(name, Options{})
		expectKind(t, err, 0)
		expectKind(t, receiveOnce(rx)(background), Closed)
		expectKind(t, rx.Close(), 0)
	}
	_, err = os.Stat(name)
	says("ring.persistent", "default no", os.IsNotExist(err))
	zero := ListenOptions{}
	plan, err := zero.plan("name")
	expectKind(t, err, 0)
	says("bus.capacity", "default 1 MiB", plan.spec.blocks[0].capacity == 1<<20 && plan.spec.blocks[1].capacity == 1<<20)
	says("bus.align", "default 16", plan.spec.blocks[0].align == 16)
	says("bus.mode", "default 0600, or 0666 with `allow_uids`", zero.socketMode() == 0o600 && (&ListenOptions{AllowUIDs: []uint32{1}}).socketMode() == 0o666)
	says("bus.handshake_timeout", "default 1 s", handshakeTimeout == time.Second)
	says("bus.backlog", "default 128", backlogDefault == 128)
	says("bus.timeout", "default 10 s", connectTimeout == 10*time.Second)
	says("bus.wait", "default `hybrid`", plan.options.Wait == Hybrid)
	rpcDefaultsAreThoseOfTheList(t, says)
}

func rpcDefaultsAreThoseOfTheList(t *testing.T, says func(id, text string, so bool)) {
	t.Helper()
	s := served(t, ServeOptions{}, func(*Server) {})
	c := calling(t, s, ClientOptions{})
	capacity := uint64(s.listener.plan.spec.blocks[0].capacity)
	says("rpc.connect.timeout", "default 10 s", connectTimeout == 10*time.Second)
	says("rpc.connect.wait", "`hybrid` (default)", c.line.rx.wait.mode == Hybrid)
	says("rpc.connect.max_buffered", "default 4 x the ring's capacity", c.ledger.maxBuffered == 4*capacity)
	says("rpc.stream.window", "default 16", rpcWindowDefault == 16)
	says("serve.capacity", "default 1 MiB", capacity == 1<<20)
	says("serve.align", "default 16", s.listener.plan.spec.blocks[0].align == 16)
	says("serve.wait", "`hybrid` (default)", s.listener.plan.options.Wait == Hybrid)
	says("serve.max_clients", "default 128", s.listener.busesMax == 128)
	says("serve.max_in_flight", "default 1024", c.MaxInFlight() == 1024)
	says("serve.max_bytes", "default 4 x capacity", s.maxBytes == 4*capacity)
}
