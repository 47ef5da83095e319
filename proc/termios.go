package proc

// Termios is how a terminal treats its bytes: Linux's struct termios, with Linux's bits.
type Termios struct {
	Iflag, Oflag, Cflag, Lflag uint32
	Cc                         [19]byte // control characters; 0 is none
}

// Indexes of Termios.Cc.
const (
	VINTR    = 0
	VQUIT    = 1
	VERASE   = 2
	VKILL    = 3
	VEOF     = 4
	VTIME    = 5
	VMIN     = 6
	VSTART   = 8
	VSTOP    = 9
	VSUSP    = 10
	VEOL     = 11
	VREPRINT = 12
	VDISCARD = 13
	VWERASE  = 14
	VLNEXT   = 15
	VEOL2    = 16
)

// Bits of Termios.Iflag.
const (
	ISTRIP  = 0x20
	INLCR   = 0x40
	IGNCR   = 0x80
	ICRNL   = 0x100
	IXON    = 0x400
	IXANY   = 0x800
	IMAXBEL = 0x2000
	IUTF8   = 0x4000
)

// Bits of Termios.Oflag.
const (
	OPOST  = 0x1
	ONLCR  = 0x4
	OCRNL  = 0x8
	ONOCR  = 0x10
	ONLRET = 0x20
	XTABS  = 0x1800
)

// Bits of Termios.Cflag. A terminal keeps them without effect.
const (
	CS8    = 0x30
	CREAD  = 0x80
	B38400 = 0xf
)

// Bits of Termios.Lflag.
const (
	ISIG    = 0x1
	ICANON  = 0x2
	ECHO    = 0x8
	ECHOE   = 0x10
	ECHOK   = 0x20
	ECHONL  = 0x40
	NOFLSH  = 0x80
	TOSTOP  = 0x100
	ECHOCTL = 0x200
	ECHOKE  = 0x800
	IEXTEN  = 0x8000
)

// DefaultTermios is how a new terminal is set: line by line, with echo and signals.
func DefaultTermios() Termios {
	return Termios{
		Iflag: ICRNL | IXON | IMAXBEL | IUTF8, Oflag: OPOST | ONLCR, Cflag: CS8 | CREAD | B38400,
		Lflag: ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
		Cc:    [19]byte{VINTR: 3, VQUIT: 28, VERASE: 127, VKILL: 21, VEOF: 4, VMIN: 1, VSTART: 17, VSTOP: 19, VSUSP: 26, VREPRINT: 18, VDISCARD: 15, VWERASE: 23, VLNEXT: 22},
	}
}

// Raw returns t as cfmakeraw makes it: bytes come and go as they are, one by one.
func (t Termios) Raw() Termios {
	t.Iflag &^= ISTRIP | INLCR | IGNCR | ICRNL | IXON | 0xf // and IGNBRK, BRKINT, IGNPAR, PARMRK
	t.Oflag &^= OPOST
	t.Lflag &^= ECHO | ECHONL | ICANON | ISIG | IEXTEN
	t.Cflag |= CS8
	t.Cc[VMIN], t.Cc[VTIME] = 1, 0
	return t
}

// WinSize is a terminal's size in characters, and in pixels if they are known.
type WinSize struct {
	Cols, Rows, XPixel, YPixel uint16
}

// When a new Termios has effect.
const (
	SetNow   = iota // TCSANOW
	SetDrain        // after what has been written was taken by the client (TCSADRAIN)
	SetFlush        // and without the input that nobody has read yet (TCSAFLUSH)
)
