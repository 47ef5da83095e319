package calc_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestBc(t *testing.T) {
	scripts := []string{"1/0\n", "x=5;x/0\n", "1+\n", "1 +* 2\n3\n", "\"abc\"\n", "print \"a\\n\",3,\"\\t\"\n", "2^100;2^-2;scale=3;2^-2;10%3;-7%3;7.5%2\n", "obase=16;255;-255;255.5;obase=2;5;obase=20;399;obase=1000;123456.5\n", "ibase=16;FF;A;ibase=A;10\n", "sqrt(2);scale=10;sqrt(2)\n", "2^0.5\n", "define f(x){return x*2}\nf(4)\n",
		"define f(x){\nauto y\ny=x\nreturn(y)\n}\nf(3)\n", "a[1]=5;a[1];a[2]\n", "length(123.450);scale(1.230);length(0);length(.001)\n", "1==1;1<2&&3>4;!0;1||0\n", "for(i=0;i<3;i++)i;while(i)i--\nif(1)2 else 3\nif(0){2}else{3}\n", ".5;-.5;0.0;1.50;-0.0;1.;00012\n", "last+1;5;last*2;.\n", "scale=2\nx=1.555\nx*1;x/1\n", "2^200*2^200;\n",
		"quit;5\n", "1;halt;2\n", "x++;x;++x;x+=5;x;x^=2;x\n", "5 5\n", "{1;2\n3}\n", "a=b=3;a;b\n", "(a=4)\n", "scale=-1\n", "obase=1\n", "1\n/* c\n c */2 # foo\n3\n", "define void f(x){print x}\nf(3)\n", "define f(a[]){a[0]=9;return a[0]}\nb[0]=1;f(b[]);b[0]\n", "define f(*a[]){a[0]=9}\nb[0]=1;f(b[]);b[0]\n", "break\n", "1.2.3\n", "A+F\n", "$\n", "foo bar\n",
		"if (1==1) print \"yes\\n\"\n", "1;\n\n;;2\n", "1+\\\n2\n", "x = 3; x *= 2; print x, \"\\n\"; \"a\nb\"\n", "define f(n){if(n<2)return n;return f(n-1)+f(n-2)}\nf(12)\n", "-2^2;2^3^2;-3%2\n", "1.23*4.567;scale=1;1.23*4.567;1/3;10/3*3\n", "a=3 < 5;a\n", "i=5;i--;i;--i;-i\n", "while(1){if(i>3)break;i+=1;if(i==2)continue;i}\n", "x=10\nx/3\nscale=20\nx/3\n", "0.1+0.2;1.10+2\n", "100000000000000000000*3\n", "obase=16;0.1;scale=5;1/3;obase=8;8.5\n", "ibase=2;101;101.1;12\n", "ibase=16;1F.8\n", "2^10000%1000\n", "print 1,2,\"x\"\n", "1/3*3;5%0\n", "define f(){return}\nf()\n", "define f(x){auto a[];a[0]=x;return a[0]}\nf(7)\n", "g(1)\n", "define f(x){x}\nf(1,2)\n", "(1+2\n3\n", "}\n1\n", "1)\n2\n", "if(2)\n3\n", "for(;;){if(++j>3)break}\nj\n", "sqrt(16);sqrt(0.25);sqrt(-1)\n", "1;2;3/0;4\n5\n", "3+4", "x=1;y=2;x,y\n", "length(0.00)\nscale(5)\n", "!1==2\n", "last\n", "2*-3\n", "ibase=10;ibase=8;10;ibase=10;ibase\n", "scale=4;5/2;e=2;e\n", "define a(x){return x+1}\na(1)*a(2)\n", "x[0]=1;x[0]+=4;x[0];x[0]++;x[0]\n", "define f(x){if(x>0){return 1}else{return -1}}\nf(3)\nf(-3)\n"}
	mathlib := []string{"e(1);s(1);c(1);a(1);l(2);j(0,1)\n", "e(0);c(0);s(0);l(1);a(0)\n", "l(0);l(-1)\n", "scale=50;4*a(1);e(1)\n", "e(100);e(-1);s(100);l(1000)\n", "scale;1/3\n", "scale=5;s(3.14159);c(2);a(10);l(0.5);j(1,2.5);j(-1,2)\n", "e(l(10));2*a(1)\n", "e(2.5);e(-20);e(.001)\n", "scale=0;e(1);l(10);a(1);s(2)\n", "a(.2);a(.5);a(1.5);a(-2);a(100)\n", "s(-1);s(10);c(-3);c(10);s(.0001)\n", "l(.001);l(10);l(1.0000001);l(123456789)\n"}
	setup := []string{"f file 2+3\n", "f quit 1\nquit\n"}
	var plain, lib []string
	for i, s := range scripts {
		name := "s" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		setup = append(setup, "f "+name+" "+s)
		plain = append(plain, "bc < "+name)
	}
	for i, s := range mathlib {
		name := "m" + string(rune('a'+i))
		setup = append(setup, "f "+name+" "+s)
		lib = append(lib, "bc -l < "+name)
	}
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: setup, Stdin: "7\n", Lines: append(append(plain, lib...), "bc file", "bc -q quit", "bc nofile", "bc -h", "bc -Z", "bc file quit")})
}

func TestDc(t *testing.T) {
	scripts := []string{"1 2+p", "5k2vp 1 3/p", "16o255p 2o5p", "16iFFp", "[abc]p", "n", "+", "1 0/", "lap", "1 2 3f c f", "5sa lap La p", "[lap 1+ dsa 5>x]sx 1sa lxx", "3 4 r f d f", "2 10^p 2 10 7|p 17 5~f", "_5p -5p 5_p", "[a]x", "1 2>a", "65P 65aP [hi]P", "12345Zp [abc]Zp 1.234Xp zp", "1 2q3p", "[1p q 2p]x 3p", "[[1pQ]x]x 2p", "[3Q]x 2p", "9 0:a 0;ap", "Kp Ip Op", "1n 2n[]pR", "3dp 4*p v p", "# c\n3p", "[1 2+p]x (1 2(", "y", "1 2=a", "2 3!=a", "1 3Rf", "[a]1+", "0k 7 2/p 7 2%p _7 2%p", "10 2^p 2 _1^p 2 .5^p", "[x]sa [y]Sa la p La p la p", "0.5p .5p 1.50p 0p _.5p", "1 2 3 z p", "2 300^p", "20o399p", "16o 10.5p", "1 2 3 3Rf c 1 2 3 _3Rf", "[[a]b]p", "1 2 3 c zp", "5k 1 3/ 3*p 10 3%p 10 3~ f", "_1v p", "1 0%", "[1p]sa 3 2>a 2 3>a 2 2=a 2 3!=a", "1k 1.23 4.56*p 100 7/p", "3 5 [r]x f", "0 1[dp d 10>q +]sa"}
	setup := []string{"f file 2 3+p\n"}
	var lines []string
	for i, s := range scripts {
		name := "s" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		setup = append(setup, "f "+name+" "+s+"\n")
		lines = append(lines, "dc "+name)
	}
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: setup, Stdin: "1 2+p\n[3\n4]p\n?\n5p\n", Lines: append(lines, "dc", "dc -e '2 3+p'", "dc -e '2 3+p' -e '4p'", "dc file sa", "dc -f file", "dc nofile", "dc --nope", "dc -h")})
}
