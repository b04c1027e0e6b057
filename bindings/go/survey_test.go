package ramway

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// list is Ls of a folder, by name.
func (f *folder) list() map[string]Segment {
	f.t.Helper()
	all, err := Ls(f.path)
	expectKind(f.t, err, 0)
	found := map[string]Segment{}
	for _, s := range all {
		if s.Path != f.at(s.Name) {
			f.t.Fatal(s.Path)
		}
		found[s.Name] = s
	}
	return found
}

// strewn is a folder with one of each, and what keeps some of them in use.
func strewn(t *testing.T) (*folder, func()) {
	t.Helper()
	dir := newFolder(t)
	tx, err := CreateSender(dir.at("live"), Options{Capacity: 4096, Align: 64})
	expectKind(t, err, 0)
	for range 3 {
		expectKind(t, tx.Send(background, 1, make([]byte, 10)), 0)
	}
	region, err := CreateRegion(dir.at("region"), 100, Options{Persistent: true})
	expectKind(t, err, 0)
	l, err := Bind(dir.at("bell"), ListenOptions{})
	expectKind(t, err, 0)
	left, err := CreateSender(dir.at("left"), Options{Capacity: 4096})
	expectKind(t, err, 0)
	expectKind(t, left.Send(background, 1, nil), 0)
	expectKind(t, left.Close(), 0)
	p := startPeer(t, "holder", dir.at("empty"), "producer")
	p.expect("ready")
	p.kill()
	kept, err := CreateRegion(dir.at("kept"), 100, Options{Persistent: true})
	expectKind(t, err, 0)
	expectKind(t, kept.Close(), 0)
	must(os.WriteFile(dir.at("other"), []byte("not ours"), 0o600))
	must(os.WriteFile(dir.at(".ramway-0123456789abcdef.new"), make([]byte, 4096), 0o600))
	must(os.WriteFile(dir.at(".hidden"), nil, 0o600))
	must(os.Mkdir(dir.at("directory"), 0o700))
	return dir, func() {
		_ = tx.Close()
		_ = region.Close()
		_ = l.Close()
	}
}

func TestLs(t *testing.T) {
	dir, finish := strewn(t)
	defer finish()
	found := dir.list()
	for _, want := range []Segment{
		{Name: "live", Kind: "ring", InUse: true, Size: 8192, Capacity: 4096, Align: 64, Used: 3 * 64, Undelivered: 3, ProducerHeld: true},
		{Name: "left", Kind: "ring", Stale: true, Size: 8192, Capacity: 4096, Align: 16, Used: 16, Undelivered: 1},
		{Name: "empty", Kind: "ring", Stale: true, Size: 8192, Capacity: 4096, Align: 16},
		{Name: "region", Kind: "region", InUse: true, Persistent: true, Size: 8192, Capacity: 4096},
		{Name: "kept", Kind: "region", Stale: true, Persistent: true, Size: 8192, Capacity: 4096},
		{Name: "bell.lock", Kind: "listener", InUse: true, Size: 4096, ProducerHeld: true},
	} {
		want.Path = dir.at(want.Name)
		if got := found[want.Name]; got != want {
			t.Errorf("%+v, expected %+v", got, want)
		}
	}
	expectKind(t, found["other"].Err, AbiMismatch)
	expectText(t, found["other"].Err, "inspecting", dir.at("other"))
	if len(found) != 7 {
		t.Fatalf("%d names", len(found))
	}
	none, err := Ls(dir.at("absent"))
	if len(none) != 0 || none == nil || err != nil {
		t.Fatal(none, err)
	}
	_, err = Ls(dir.at("other"))
	expectText(t, err, "listing", "other")
	// Without a word: the Ramway directory.
	t.Setenv("RAMWAY_DIR", dir.path)
	all, err := Ls("")
	if len(all) != 7 || err != nil {
		t.Fatal(all, err)
	}
}

func TestUnlink(t *testing.T) {
	dir, finish := strewn(t)
	for name, kind := range map[string]Kind{
		"live": Busy, "region": Busy, "bell.lock": Busy, "left": 0, "empty": 0, "kept": 0, "other": AbiMismatch,
		"directory": InvalidArgument, "absent": NotFound,
	} {
		err := Unlink(dir.at(name))
		expectKind(t, err, kind)
		if kind != 0 {
			expectText(t, err, "unlinking", dir.at(name))
		}
	}
	expectKind(t, Unlink("bad name"), InvalidArgument)
	dir.expectNames(".hidden", ".ramway-0123456789abcdef.new", "bell", "bell.lock", "directory", "live", "other", "region")
	finish()
	expectKind(t, Unlink(dir.at("live")), 0)
	expectKind(t, Unlink(dir.at("region")), 0)

	// A dead listener's socket goes with it.
	p := startPeer(t, "bind", dir.at("dead"))
	p.expect("listening")
	p.kill()
	expectKind(t, Unlink(dir.at("dead.lock")), 0)
	dir.expectNames(".hidden", ".ramway-0123456789abcdef.new", "directory", "other")
}

func TestClean(t *testing.T) {
	dir, finish := strewn(t)
	defer finish()
	before := dir.names()
	for _, dry := range []bool{true, false} {
		got, err := Clean(dir.path, CleanOptions{DryRun: dry})
		expectKind(t, err, 0)
		want := []Cleaned{
			{Name: ".ramway-0123456789abcdef.new", Removed: true},
			{Name: "bell.lock", Kept: "in use"},
			{Name: "empty", Removed: true},
			{Name: "kept", Kept: "it is persistent"},
			{Name: "left", Kept: "it holds 1 undelivered messages (0 bytes)"},
			{Name: "live", Kept: "in use"},
			{Name: "other", Kept: "not a Ramway segment"},
			{Name: "region", Kept: "in use"},
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v", got)
		}
		if dry && !slices.Equal(dir.names(), before) {
			t.Fatal("a dry run removed something")
		}
	}
	got, err := Clean(dir.path, CleanOptions{Undelivered: true})
	expectKind(t, err, 0)
	if n := len(slices.DeleteFunc(got, func(c Cleaned) bool { return !c.Removed })); n != 2 {
		t.Fatalf("%d removed", n)
	}
	dir.expectNames(".hidden", "bell", "bell.lock", "directory", "live", "other", "region")
}

func init() {
	// Both ends are descriptors 3 and 4: what comes in goes out, until it ends or told.
	helpers["unnamed-echo"] = func([]string) {
		rx, err := ReceiverFromFile(os.NewFile(3, "in"), Options{})
		must(err)
		tx, err := SenderFromFile(os.NewFile(4, "out"), Options{})
		must(err)
		say("attached")
		for m := range rx.All(background) {
			must(tx.SendTagged(background, m.TypeID(), m.Tag(), m.Clone()))
		}
		must(rx.Err())
		must(tx.Close())
		must(rx.Close())
	}
}

func TestUnnamedRingsForAChild(t *testing.T) {
	before := newFolder(t)
	t.Setenv("RAMWAY_DIR", before.path)
	there, err := Unnamed(Options{Capacity: 4096})
	expectKind(t, err, 0)
	back, err := Unnamed(Options{Capacity: 8192, Align: 64})
	expectKind(t, err, 0)
	child := func() *peer {
		p := startPeerWith(t, func(c *exec.Cmd) { c.ExtraFiles = []*os.File{there, back} }, "unnamed-echo")
		p.expect("attached")
		return p
	}
	tx, err := SenderFromFile(there, Options{})
	expectKind(t, err, 0)
	rx, err := ReceiverFromFile(back, Options{Capacity: 8192, Align: 64})
	expectKind(t, err, 0)
	_, err = SenderFromFile(there, Options{})
	expectKind(t, err, Busy)
	p := child()
	if epoch, err := rx.WaitForPeer(background); epoch != 1 || err != nil {
		t.Fatal(epoch, err)
	}
	echoed := func(text string) {
		t.Helper()
		expectKind(t, tx.SendTagged(background, 7, 9, []byte(text)), 0)
		m, err := rx.Recv(background)
		expectKind(t, err, 0)
		if string(m.Clone()) != text || m.TypeID() != 7 || m.Tag() != 9 {
			t.Fatalf("%q", m.Clone())
		}
		m.Release()
	}
	echoed("one")
	// What is not released is delivered again.
	eventually(t, "the child has released it", func() bool { return tx.Len() == 0 })
	p.kill()
	expectKind(t, receiveOnce(rx)(background), PeerDead)
	// Roles, death and successors as with a name.
	p = child()
	if epoch, err := rx.WaitForPeer(background); epoch != 2 || err != nil {
		t.Fatal(epoch, err)
	}
	echoed("two")
	// The ring lives without the files, and after its name would have vanished.
	must(there.Close())
	must(back.Close())
	echoed("three")
	expectKind(t, tx.Close(), 0)
	expectKind(t, receiveOnce(rx)(background), Closed)
	expectKind(t, rx.Close(), 0)
	p.finish()
	before.expectNames()
}

func TestWhatIsNoUnnamedRing(t *testing.T) {
	dir := newFolder(t)
	tx, err := CreateSender(dir.at("ring"), Options{Capacity: 4096})
	expectKind(t, err, 0)
	defer tx.Close()
	named, err := os.OpenFile(dir.at("ring"), os.O_RDWR, 0)
	must(err)
	defer named.Close()
	reader, writer, err := os.Pipe()
	must(err)
	defer reader.Close()
	defer writer.Close()
	ring, err := Unnamed(Options{Capacity: 4096})
	must(err)
	defer ring.Close()
	closed, err := Unnamed(Options{Capacity: 4096})
	must(err)
	must(closed.Close())
	for _, c := range []struct {
		file *os.File
		o    Options
		says string
	}{
		{named, Options{}, "has a name"},
		{reader, Options{}, "a FIFO"},
		{nil, Options{}, "nil"},
		{ring, Options{Capacity: 8192}, "capacity"},
		{ring, Options{Persistent: true}, "Persistent"},
		{ring, Options{Mode: 0o600}, "Mode"},
		{ring, Options{Discard: true}, "Discard"},
		{ring, Options{Timeout: -1}, "Timeout"},
	} {
		_, err := ReceiverFromFile(c.file, c.o)
		expectKind(t, err, InvalidArgument)
		expectText(t, err, c.says, "attaching to a ring without a name")
	}
	_, err = SenderFromFile(closed, Options{})
	if err == nil {
		t.Fatal("a closed file")
	}
	// A descriptor whose size another holder of it changed.
	must(ring.Truncate(4096))
	_, err = SenderFromFile(ring, Options{})
	expectKind(t, err, Corrupt)
	for _, o := range []Options{{Persistent: true}, {Discard: true}, {Mode: 0o600}, {Align: 3}, {Capacity: -1}} {
		_, err := Unnamed(o)
		expectKind(t, err, InvalidArgument)
	}
}

// TestOptionsThatWouldDoNothingAreRefused names each.
func TestOptionsThatWouldDoNothingAreRefused(t *testing.T) {
	name := newFolder(t).at("ring")
	tx, err := CreateSender(name, Options{Discard: true, Persistent: true, Mode: 0o640})
	expectKind(t, err, 0)
	defer tx.Close()
	for _, c := range []struct {
		option string
		o      Options
		create bool
	}{
		{"Discard applies to create only", Options{Discard: true}, true},
		{"Persistent", Options{Persistent: true}, false},
		{"Mode", Options{Mode: 0o644}, false},
	} {
		_, opened := OpenReceiver(name, c.o)
		_, region := OpenRegion(name, c.o)
		_, readOnly := OpenRegionReadOnly(name, c.o)
		_, _, paired := Pair(c.o)
		expectText(t, paired, c.option)
		all := []error{opened, region, readOnly}
		if c.create {
			_, made := OpenOrCreateReceiver(name, c.o)
			_, region := OpenOrCreateRegion(name, 10, c.o)
			all = append(all, made, region)
		}
		for _, err := range all {
			expectKind(t, err, InvalidArgument)
			expectText(t, err, c.option, name)
		}
	}
	rx, err := OpenOrCreateReceiver(name, Options{Persistent: true, Mode: 0o640})
	expectKind(t, err, 0)
	expectKind(t, rx.Close(), 0)
}

func TestNUMANode(t *testing.T) {
	dir := newFolder(t)
	absent := 1000
	_, err := CreateSender(dir.at("ring"), Options{NUMANode: &absent})
	expectKind(t, err, InvalidArgument)
	expectText(t, err, "NUMA node 1000 does not exist; this machine has no", dir.at("ring"))
	dir.expectNames()
	first := 0
	tx, err := CreateSender(dir.at("ring"), Options{NUMANode: &first, Capacity: 1 << 16})
	if KindOf(err) == PermissionDenied || KindOf(err) == Unsupported {
		// A container's filter, or a kernel without nodes, refuses with the option's name.
		expectText(t, err, "NUMANode")
		return
	}
	expectKind(t, err, 0)
	rx, err := OpenReceiver(dir.at("ring"), Options{NUMANode: &first})
	expectKind(t, err, 0)
	expectKind(t, rx.Close(), 0)
	expectKind(t, tx.Close(), 0)
}

// TestWhatNobodyCanResume: the advice of a Create over what is there is one that works.
func TestWhatNobodyCanResume(t *testing.T) {
	name := newFolder(t).at("ring")
	p := startPeer(t, "holder", name, "producer")
	p.expect("ready")
	p.tell("put")
	p.expect("done")
	p.kill()
	_, err := CreateSender(name, Options{})
	expectKind(t, err, AlreadyExists)
	expectText(t, err, "1 undelivered message", "an OpenOrCreate resumes it", "Discard starts anew")
	// A head that is no multiple of the alignment.
	poke(t, name, block0+offHead, []byte{7})
	_, err = CreateSender(name, Options{})
	expectKind(t, err, AlreadyExists)
	expectText(t, err, "it is damaged", "nobody can resume it", "Discard starts anew")
	_, err = OpenOrCreateSender(name, Options{})
	expectKind(t, err, Corrupt)
	tx, err := CreateSender(name, Options{Discard: true})
	expectKind(t, err, 0)
	expectKind(t, tx.Close(), 0)
}
